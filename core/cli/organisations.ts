/** Organisations and what they may use. */
import { isAmong } from "../catalog/access.ts"
import type { Catalog, Model } from "../offer.ts"
import type { Organisation, OrganisationChange } from "../state/store.ts"
import { type Answer, CliError, type Command, type Input, word } from "./command.ts"
import { newName, type Opened, organisationOf, withStore } from "./store.ts"
import { table } from "./text.ts"

export const organisationCommands: readonly Command[] = [
  {
    name: "org create",
    takes: "<organisation>",
    options: [["--name <title>", "how people call it"]],
    what: "create an organisation that may use every model",
    run: input =>
      withStore(
        input,
        async ({ store, config }) => {
          const name = newName(word(input, 0))
          const organisation = {
            name,
            title: input.options.name ?? name,
            gateway: true,
            models: "all",
            disabled: [],
          } as const
          if (!(await store.directory.createOrganisation(organisation)))
            throw new CliError(`organisation ${name} exists already`)
          return shown(organisation, config.catalog)
        },
        { makes: true },
      ),
  },
  {
    name: "org list",
    what: "list the organisations",
    run: input =>
      withStore(input, async ({ store, config }) => {
        const all = await store.directory.organisations()
        return {
          data: all,
          text: table(
            head,
            all.map(one => row(one, config.catalog)),
          ),
        }
      }),
  },
  {
    name: "org gateway",
    takes: "<organisation> <on|off>",
    what: "switch an organisation's gateway on or off",
    run: input =>
      withStore(input, opened => change(opened, input, () => ({ gateway: oneOf(input, ["on", "off"]) === "on" }))),
  },
  {
    name: "org overlay",
    takes: "<organisation> <name|none>",
    what: "give an organisation the prices of an overlay of the catalog",
    run: input =>
      withStore(input, opened =>
        change(opened, input, () => {
          const name = word(input, 1)
          return { overlay: name === "none" ? undefined : overlayName(opened.config.catalog, name) }
        }),
      ),
  },
  {
    name: "org models",
    takes: "<organisation> <all|only|enable|disable> [model...]",
    what: "choose the models that an organisation may use",
    run: input =>
      withStore(input, opened =>
        change(opened, input, organisation => modelsChange(organisation, input, opened.config.catalog)),
      ),
  },
]

const oneOf = (input: Input, allowed: readonly string[]): string => {
  const given = word(input, 1)
  if (allowed.includes(given)) return given
  throw new CliError(`expected ${allowed.join(" or ")}, not ${given}`, 2)
}

const change = async ({ store, config }: Opened, input: Input, of: OrganisationChange): Promise<Answer> => {
  const organisation = await organisationOf(store, input)
  of(organisation) // wrong words are told before anything is written
  return shown((await store.directory.changeOrganisation(organisation.name, of)) ?? organisation, config.catalog)
}

const modelsChange = (organisation: Organisation, input: Input, catalog: Catalog): ReturnType<OrganisationChange> => {
  const verb = oneOf(input, ["all", "only", "enable", "disable"])
  const models = input.words.slice(2).map(name => modelNamed(catalog, name))
  if ((verb === "all") !== (models.length === 0)) {
    throw new CliError(verb === "all" ? "all takes no names of models" : `${verb} needs the name of a model`, 2)
  }
  return modelChanges[verb]?.(organisation, models) ?? {}
}

/** An organisation has every model but a few, or a list of its own. */
const modelChanges: Readonly<
  Record<string, (now: Organisation, chosen: readonly Model[]) => ReturnType<OrganisationChange>>
> = {
  all: () => ({ models: "all", disabled: [] }),
  only: (_, chosen) => ({ models: withThem([], chosen), disabled: [] }),
  enable: ({ models, disabled }, chosen) =>
    models === "all" ? { disabled: without(disabled, chosen) } : { models: withThem(models, chosen) },
  disable: ({ models, disabled }, chosen) =>
    models === "all" ? { disabled: withThem(disabled, chosen) } : { models: without(models, chosen) },
}

const withThem = (list: readonly string[], models: readonly Model[]): readonly string[] => [
  ...new Set([...list, ...models.filter(model => !isAmong(list, model)).map(({ name }) => name)]),
]

/** Also where they stand under a name that is an old one by now. */
const without = (list: readonly string[], models: readonly Model[]): readonly string[] =>
  list.filter(name => !models.some(model => isAmong([name], model)))

/** Organisations keep the current name. */
const modelNamed = (catalog: Catalog, name: string): Model => {
  const model = catalog.find(name)
  if (model === undefined) throw new CliError(`the catalog has no model ${name}`)
  return model
}

const overlayName = ({ overlays }: Catalog, name: string): string => {
  if (overlays.includes(name)) return name
  throw new CliError(`the catalog has no overlay ${name}; it has ${overlays.join(", ") || "none"}`, 2)
}

const head = ["organisation", "name", "gateway", "models", "overlay"]

const overlayText = ({ overlay }: Organisation, { overlays }: Catalog): string => {
  if (overlay === undefined) return "none"
  return overlays.includes(overlay) ? overlay : `${overlay} (not in the catalog: no prices)`
}

const row = (one: Organisation, catalog: Catalog): readonly string[] => [
  one.name,
  one.title,
  one.gateway ? "on" : "off",
  one.models === "all" ? ["all", ...one.disabled.map(name => `-${name}`)].join(" ") : one.models.join(" ") || "none",
  overlayText(one, catalog),
]

const shown = (organisation: Organisation, catalog: Catalog): Answer => ({
  data: organisation,
  text: table(head, [row(organisation, catalog)]),
})
