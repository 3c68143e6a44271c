/**
 * The static details of a workflow in the Temporal UI: Markdown that its history keeps as long as Temporal keeps the
 * history.
 */

/** The masked email address of an account, or null for one without an address. */
export type FindMaskedEmail = (userId: string) => Promise<string | null>

const valueCharactersMax = 100

/**
 * A Markdown list with one line for each value that is not null. Values are quoted as code, and a backtick or a control
 * character in them is left out, so that the name of a connection cannot contain Markdown.
 */
export const listDetails = (details: readonly (readonly [name: string, value: string | null])[]): string =>
  details
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `- ${name} \`${(value ?? '').replace(/[`\p{C}]/gu, '').slice(0, valueCharactersMax)}\``)
    .join('\n')
