/** The OAuth providers: their names, and the buttons that sign in with them. */
import { isApiFailure } from '../../client/api-error.ts'
import type { LegalPages } from '../../platform/config/legal.ts'
import { TermsField } from '../legal-links.tsx'
import type { Visit } from '../page.ts'

export const providerNames = ['twitch', 'google', 'discord'] as const
export type ProviderName = (typeof providerNames)[number]

export const displayNames: Readonly<Record<ProviderName, string>> = {
  twitch: 'Twitch',
  google: 'Google',
  discord: 'Discord',
}

export const parseProvider = (name: string | undefined): ProviderName | undefined =>
  providerNames.find((provider) => provider === name)

/** Formats a list that is separated by blanks or commas, such as `twitch,google`. Omits words that name no provider. */
export const formatProviderNames = (list: string): string => {
  const words = list.split(/[ ,]/)
  return providerNames
    .filter((name) => words.includes(name))
    .map((name) => displayNames[name])
    .join(', ')
}

/** The providers that are set up. Empty when the API is unavailable, since forms work without them. */
export async function configuredProviders({ anonymousApi }: Visit): Promise<readonly ProviderName[]> {
  try {
    const { data } = await anonymousApi.GET('/api/v1/auth/oauth/providers')
    return providerNames.filter((name) =>
      data?.providers?.some(({ provider, configured }) => provider === name && configured),
    )
  } catch (error) {
    if (isApiFailure(error)) return []
    throw error
  }
}

interface SignInButtonsProps {
  readonly providers: readonly ProviderName[]
  /** The page to open after signing in. */
  readonly next: string
  /** The page states the terms, which a sign-in that creates an account accepts. */
  readonly legal: LegalPages
}

export const SignInButtons = ({ providers, next, legal }: SignInButtonsProps) =>
  providers.length === 0 ? null : (
    <div class="ways">
      <p class="or">or</p>
      {providers.map((provider) => (
        <form key={provider} method="post" action={`/oauth/${provider}/start`}>
          <input type="hidden" name="intent" value="sign_in" />
          <input type="hidden" name="next" value={next} />
          <TermsField legal={legal} />
          <button class="second wide" type="submit">
            Continue with {displayNames[provider]}
          </button>
        </form>
      ))}
    </div>
  )
