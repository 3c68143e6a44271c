/** The ways to sign in to an account: linked accounts, and where it is signed in. */
import type { AuthSession, LinkedAccount } from '../api-replies.ts'
import { TimeAgo } from '../time-text.tsx'
import { displayNames, type ProviderName } from './providers.tsx'

interface LinkedAccountsProps {
  readonly accounts: readonly LinkedAccount[]
  /** The providers that are set up. */
  readonly configured: readonly ProviderName[]
}

export function LinkedAccounts({ accounts, configured }: LinkedAccountsProps) {
  const shown = accounts.filter(({ provider, linked }) => linked || configured.includes(provider))
  return (
    <section class="card" aria-labelledby="linked">
      <h2 id="linked">Linked accounts</h2>
      <p class="muted">Anyone who can sign in to a linked account can sign in here.</p>
      {shown.length === 0 ? <p>No accounts can be linked here.</p> : null}
      {shown.length > 0 ? (
        <ul class="entries">
          {shown.map((account) => (
            <li
              class="row apart"
              key={account.provider}
              data-provider={account.provider}
              data-linked={account.linked ? 'yes' : 'no'}
            >
              <span class="row">
                <strong>{displayNames[account.provider]}</strong>
                {account.linked ? <span class="badge good">Linked</span> : null}
              </span>
              <LinkActions account={account} isConfigured={configured.includes(account.provider)} />
            </li>
          ))}
        </ul>
      ) : null}
    </section>
  )
}

const LinkActions = ({
  account,
  isConfigured,
}: {
  readonly account: LinkedAccount
  readonly isConfigured: boolean
}) => {
  const { provider, linked } = account
  return (
    <span class="row">
      {isConfigured ? <LinkForm provider={provider} isForChat={linked} /> : null}
      {linked ? (
        <form method="post" action={`/account/linked/${provider}/unlink`}>
          <button class="danger" type="submit">
            Unlink<span class="unseen"> {displayNames[provider]}</span>
          </button>
        </form>
      ) : null}
    </span>
  )
}

const chatTexts: Readonly<Record<ProviderName, string>> = {
  twitch: 'Connect Twitch chat',
  google: 'Connect YouTube chat',
  discord: 'Connect Discord servers',
}

/** Linking requests the identity only; the chat scopes are requested when a linked account is connected to the chat. */
const LinkForm = ({ provider, isForChat }: { readonly provider: ProviderName; readonly isForChat: boolean }) => (
  <form method="post" action={`/oauth/${provider}/start`}>
    <input type="hidden" name="intent" value="link" />
    <input type="hidden" name="scopes" value={isForChat ? 'chat' : 'identity'} />
    <button class="second" type="submit">
      {isForChat ? chatTexts[provider] : `Link ${displayNames[provider]}`}
    </button>
  </form>
)

type ClientKind = AuthSession['kind']

export const AuthSessions = ({ sessions }: { readonly sessions: readonly AuthSession[] }) => (
  <section class="card" aria-labelledby="auth-sessions">
    <h2 id="auth-sessions">Where you’re signed in</h2>
    <ul class="entries">
      {sessions.map((session) => (
        <li
          class="row apart"
          key={session.id}
          data-auth-session={session.id}
          data-client-kind={session.kind}
          data-current={session.current ? 'yes' : 'no'}
        >
          <div>
            <p class="row">
              <strong>{nameOf(session)}</strong>
              {session.kind === 'web' ? null : <span class="badge">Streaming software</span>}
              {session.current ? <span class="badge good">This browser</span> : null}
            </p>
            <p class="muted">
              {session.ip} · signed in <TimeAgo at={session.created_at} />, last used{' '}
              <TimeAgo at={session.last_used_at} />
            </p>
          </div>
          {session.current ? null : <SignOutForm session={session} />}
        </li>
      ))}
    </ul>
    {sessions.length > 1 ? (
      <form method="post" action="/account/sign-out-elsewhere">
        <button class="second" type="submit">
          Sign out everywhere else
        </button>
      </form>
    ) : null}
  </section>
)

const SignOutForm = ({ session }: { readonly session: AuthSession }) => (
  <form method="post" action={`/account/sessions/${session.id}/sign-out`}>
    <button class="second" type="submit">
      Sign out
      <span class="unseen">
        {' '}
        {nameOf(session)} at {session.ip}
        {session.kind === 'web' ? null : ', streaming software'}
      </span>
    </button>
  </form>
)

/** A plugin chooses its own name, even “Browser”, so pages show the kind of the client beside it. */
const nameOf = ({ kind, client, browser, system }: AuthSession): string =>
  kind === 'web' ? nameOfBrowser(browser, system) : client

/** `Chrome on Windows`, or the part that is known. */
function nameOfBrowser(browser: string | null, system: string | null): string {
  const name = browser ?? 'Browser'
  return system === null ? name : `${name} on ${system}`
}

export const describeClient = (client: string, kind: ClientKind | null): string =>
  kind === 'web' ? 'Browser' : `streaming software “${client}”`
