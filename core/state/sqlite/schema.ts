/** The tables of the embedded store. Amounts are integer micros, times Unix milliseconds. */

export const schemaVersion = 2

/**
 * The ledger. Rows stand in the order of their writing: each knows the one before it of its account (`previous`, 0 for
 * none), the account knows its last. An index in each account's order would write a page of its own for every charge.
 */
const entries = `
  CREATE TABLE entries (
    row INTEGER PRIMARY KEY, previous INTEGER NOT NULL,
    account INTEGER NOT NULL, sequence INTEGER NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL,
    micros INTEGER NOT NULL, shortfall INTEGER NOT NULL, detail TEXT, reason TEXT
  ) STRICT;
  CREATE UNIQUE INDEX entries_once ON entries (id, account, kind);
  CREATE TABLE milestones (
    account INTEGER NOT NULL, sequence INTEGER NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (account, sequence)
  ) WITHOUT ROWID, STRICT;
`

/** From one row of an account to its next in this table: where the reading of a page may begin. */
export const milestoneEvery = 64

export const schema = `
  CREATE TABLE organisations (name TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID, STRICT;
  CREATE TABLE members (organisation TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (organisation, name)) WITHOUT ROWID, STRICT;
  CREATE TABLE keys (
    digest TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, organisation TEXT NOT NULL, member TEXT NOT NULL,
    name TEXT NOT NULL, state TEXT NOT NULL, created_at INTEGER NOT NULL
  ) WITHOUT ROWID, STRICT;
  CREATE INDEX keys_of_organisation ON keys (organisation, created_at);
  CREATE TABLE accounts (
    id INTEGER PRIMARY KEY, organisation TEXT NOT NULL, member TEXT NOT NULL,
    granted INTEGER NOT NULL, spent INTEGER NOT NULL, sequence INTEGER NOT NULL, last INTEGER NOT NULL,
    UNIQUE (organisation, member), CHECK (spent >= 0 AND granted >= spent)
  ) STRICT;
  ${entries}
  CREATE TABLE usage (
    account INTEGER NOT NULL, day TEXT NOT NULL, key TEXT NOT NULL, model TEXT NOT NULL, kind TEXT NOT NULL, route TEXT NOT NULL,
    requests INTEGER NOT NULL, micros INTEGER NOT NULL, input REAL NOT NULL, output REAL NOT NULL, cached REAL NOT NULL,
    seconds REAL NOT NULL, images REAL NOT NULL,
    PRIMARY KEY (account, day, key, model, kind, route)
  ) WITHOUT ROWID, STRICT;
  CREATE TABLE records (key TEXT PRIMARY KEY, value TEXT NOT NULL, expires_at INTEGER NOT NULL) WITHOUT ROWID, STRICT;
  CREATE INDEX records_by_expiry ON records (expires_at);
  CREATE TABLE health (beat INTEGER NOT NULL) STRICT;
  INSERT INTO health VALUES (0);
`

/** What brings a file of an older version to the next one. */
export const upgrades: Readonly<Record<number, string>> = {
  1: `
    DROP INDEX entries_in_order;
    DROP INDEX entries_once;
    ALTER TABLE entries RENAME TO older;
    ${entries}
    INSERT INTO entries SELECT rowid, coalesce(lag(rowid) OVER (PARTITION BY account ORDER BY sequence), 0), * FROM older;
    DROP TABLE older;
    INSERT INTO milestones SELECT account, sequence, row FROM entries WHERE sequence % ${milestoneEvery} = 0;
    ALTER TABLE accounts ADD COLUMN last INTEGER NOT NULL DEFAULT 0;
    UPDATE accounts SET last = newest.row FROM (SELECT account, max(sequence), row FROM entries GROUP BY account) AS newest
      WHERE newest.account = accounts.id;
  `,
}
