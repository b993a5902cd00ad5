/** Organisations and what they may use. */
import type { Catalog } from "../offer.ts"
import type { Organisation, Store } from "../state/store.ts"
import { type Answer, CliError, type Command, type Input, word } from "./command.ts"
import { newName, organisationOf, withStore } from "./store.ts"
import { table } from "./text.ts"

type Change = Partial<Omit<Organisation, "name">>

export const organisationCommands: readonly Command[] = [
  {
    name: "org create",
    takes: "<organisation>",
    options: [["--name <title>", "how people call it"]],
    what: "create an organisation that may use every model",
    run: input =>
      withStore(input, async ({ store }) => {
        const name = newName(word(input, 0))
        const organisation = {
          name,
          title: input.options.name ?? name,
          gateway: true,
          models: "all",
          disabled: [],
        } as const
        if (!(await store.directory.createOrganisation(organisation))) throw new CliError(`organisation ${name} exists`)
        return shown(organisation)
      }),
  },
  {
    name: "org list",
    what: "list the organisations",
    run: input =>
      withStore(input, async ({ store }) => {
        const all = await store.directory.organisations()
        return { data: all, text: table(head, all.map(row)) }
      }),
  },
  {
    name: "org gateway",
    takes: "<organisation> <on|off>",
    what: "switch an organisation's gateway on or off",
    run: input =>
      withStore(input, ({ store }) => change(store, input, () => ({ gateway: oneOf(input, ["on", "off"]) === "on" }))),
  },
  {
    name: "org overlay",
    takes: "<organisation> <name|none>",
    what: "give an organisation the prices of an overlay of the catalog",
    run: input =>
      withStore(input, ({ store, config }) =>
        change(store, input, () => {
          const overlay = oneOf(input, ["none", ...config.catalog.overlays])
          return { overlay: overlay === "none" ? undefined : overlay }
        }),
      ),
  },
  {
    name: "org models",
    takes: "<organisation> <all|only|enable|disable> [model...]",
    what: "choose the models that an organisation may use",
    run: input =>
      withStore(input, ({ store, config }) =>
        change(store, input, organisation => modelsChange(organisation, input, config.catalog)),
      ),
  },
]

const oneOf = (input: Input, allowed: readonly string[]): string => {
  const given = word(input, 1)
  if (allowed.includes(given)) return given
  throw new CliError(`expected ${allowed.join(" or ")}, not ${given}`, 2)
}

const change = async (store: Store, input: Input, of: (organisation: Organisation) => Change): Promise<Answer> => {
  const organisation = await organisationOf(store, input)
  const changed = of(organisation)
  await store.directory.changeOrganisation(organisation.name, changed)
  return shown({ ...organisation, ...changed })
}

const modelsChange = (organisation: Organisation, input: Input, catalog: Catalog): Change => {
  const verb = oneOf(input, ["all", "only", "enable", "disable"])
  const names = input.words.slice(2).map(name => modelName(catalog, name))
  if ((verb === "all") !== (names.length === 0)) {
    throw new CliError(verb === "all" ? "all takes no names of models" : `${verb} needs the name of a model`, 2)
  }
  return modelChanges[verb]?.(organisation, names) ?? {}
}

/** An organisation has every model but a few, or a list of its own. */
const modelChanges: Readonly<Record<string, (now: Organisation, names: readonly string[]) => Change>> = {
  all: () => ({ models: "all", disabled: [] }),
  only: (_, names) => ({ models: [...new Set(names)], disabled: [] }),
  enable: ({ models, disabled }, names) =>
    models === "all" ? { disabled: without(disabled, names) } : { models: [...new Set([...models, ...names])] },
  disable: ({ models, disabled }, names) =>
    models === "all" ? { disabled: [...new Set([...disabled, ...names])] } : { models: without(models, names) },
}

const without = (list: readonly string[], names: readonly string[]): readonly string[] =>
  list.filter(name => !names.includes(name))

/** The current name: organisations keep no aliases. */
const modelName = (catalog: Catalog, name: string): string => {
  const model = catalog.find(name)
  if (model === undefined) throw new CliError(`the catalog has no model ${name}`)
  return model.name
}

const head = ["organisation", "name", "gateway", "models", "overlay"]

const row = (one: Organisation): readonly string[] => [
  one.name,
  one.title,
  one.gateway ? "on" : "off",
  one.models === "all" ? ["all", ...one.disabled.map(name => `-${name}`)].join(" ") : one.models.join(" ") || "none",
  one.overlay ?? "none",
]

const shown = (organisation: Organisation): Answer => ({ data: organisation, text: table(head, [row(organisation)]) })
