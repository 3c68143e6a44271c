/** The version of the terms that a sign-up states. */
import type { Config } from '../../platform/config/config.ts'
import { Refusal } from '../http/refusals.ts'
import { storableText } from '../http/schemas.ts'

export const TermsVersion = storableText(64)
  .optional()
  .describe(
    'The version of the terms that the person has read and accepts, which is recorded. Leave it out where no terms were shown.',
  )

/** Refuses with `terms_outdated` unless the version is the present one: another text was read. */
export function requirePresentTerms({ legal }: Pick<Config, 'legal'>, version: string | undefined): void {
  if (version !== undefined && version !== legal.terms?.version) throw new Refusal('terms_outdated')
}
