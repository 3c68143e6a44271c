/** The providers that one can sign in with: their names, and the buttons that lead to them. */
import { ApiUnavailableError } from '../api.ts'
import type { Visit } from '../page.ts'

export const providerNames = ['twitch', 'google', 'discord'] as const
export type ProviderName = (typeof providerNames)[number]

export const displayNames: Readonly<Record<ProviderName, string>> = {
  twitch: 'Twitch',
  google: 'Google',
  discord: 'Discord',
}

/** The provider that a page's path names, if it is one. */
export const parseProvider = (name: string | undefined): ProviderName | undefined =>
  providerNames.find((one) => one === name)

/** The providers in a list that blanks or commas separate, as people read them. Other words in it are left out. */
export const formatProviderNames = (list: string): string => {
  const words = list.split(/[ ,]/)
  return providerNames
    .filter((name) => words.includes(name))
    .map((name) => displayNames[name])
    .join(', ')
}

/** Those that are set up. None when nobody can tell: a form that needs none of them is shown all the same. */
export async function configuredProviders({ callApiAnonymously }: Visit): Promise<readonly ProviderName[]> {
  type Answer = { readonly providers?: readonly { readonly provider: string; readonly configured: boolean }[] }
  try {
    const { body } = await callApiAnonymously<Answer>('GET', '/api/v1/auth/oauth/providers')
    return providerNames.filter((name) => body.providers?.some((one) => one.provider === name && one.configured))
  } catch (error) {
    if (error instanceof ApiUnavailableError) return []
    throw error
  }
}

interface Offered {
  readonly providers: readonly ProviderName[]
  /** The page to come back to. */
  readonly next: string
}

/** Leave for a provider and come back signed in. */
export const SignInButtons = ({ providers, next }: Offered) =>
  providers.length === 0 ? null : (
    <div class="ways">
      <p class="or">or</p>
      {providers.map((provider) => (
        <form key={provider} method="post" action={`/oauth/${provider}/start`}>
          <input type="hidden" name="intent" value="sign_in" />
          <input type="hidden" name="next" value={next} />
          <button class="second wide" type="submit">
            Continue with {displayNames[provider]}
          </button>
        </form>
      ))}
    </div>
  )
