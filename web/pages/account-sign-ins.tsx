/** The ways into an account: what is linked to it, and where it is signed in. */
import { TimeAgo } from '../time-text.tsx'
import { displayNames, type ProviderName } from './providers.tsx'

export interface LinkedAccount {
  readonly provider: ProviderName
  readonly linked: boolean
}

/** What being connected to the chat means there. */
const chats: Readonly<Record<ProviderName, string>> = {
  twitch: 'Connect Twitch chat',
  google: 'Connect YouTube chat',
  discord: 'Connect Discord servers',
}

interface Linkable {
  readonly accounts: readonly LinkedAccount[]
  /** Providers that can be signed in with here. */
  readonly configured: readonly ProviderName[]
}

export function LinkedAccounts({ accounts, configured }: Linkable) {
  const shown = accounts.filter(({ provider, linked }) => linked || configured.includes(provider))
  return (
    <section class="card" aria-labelledby="linked">
      <h2 id="linked">Linked accounts</h2>
      <p class="muted">Whoever can enter one of these can enter this account.</p>
      {shown.length === 0 ? <p>None can be linked here.</p> : null}
      {shown.length > 0 ? (
        <ul class="entries">
          {shown.map((account) => (
            <li class="row apart" key={account.provider}>
              <span class="row">
                <strong>{displayNames[account.provider]}</strong>
                {account.linked ? <span class="badge good">Linked</span> : null}
              </span>
              <Choices account={account} isConfigured={configured.includes(account.provider)} />
            </li>
          ))}
        </ul>
      ) : null}
    </section>
  )
}

const Choices = ({ account, isConfigured }: { readonly account: LinkedAccount; readonly isConfigured: boolean }) => {
  const { provider, linked } = account
  return (
    <span class="row">
      {isConfigured ? <Start provider={provider} isForChat={linked} /> : null}
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

/** Identity first; the chat is asked for only when somebody wants it. */
const Start = ({ provider, isForChat }: { readonly provider: ProviderName; readonly isForChat: boolean }) => (
  <form method="post" action={`/oauth/${provider}/start`}>
    <input type="hidden" name="intent" value="link" />
    <input type="hidden" name="scopes" value={isForChat ? 'chat' : 'identity'} />
    <button class="second" type="submit">
      {isForChat ? chats[provider] : `Link ${displayNames[provider]}`}
    </button>
  </form>
)

export interface AuthSession {
  readonly id: string
  readonly client: string
  readonly kind: ClientKind
  readonly ip: string
  readonly created_at: string
  readonly last_used_at: string
  readonly current: boolean
}

export const SignedIn = ({ sessions }: { readonly sessions: readonly AuthSession[] }) => (
  <section class="card" aria-labelledby="signed-in">
    <h2 id="signed-in">Signed in</h2>
    <ul class="entries">
      {sessions.map((session) => (
        <li class="row apart" key={session.id}>
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
          {session.current ? null : (
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
          )}
        </li>
      ))}
    </ul>
  </section>
)

export type ClientKind = 'web' | 'plugin'

/** A plugin chooses its own name, “Browser” too, so its kind always stands beside it. */
const nameOf = ({ kind, client }: Pick<AuthSession, 'kind' | 'client'>): string => (kind === 'web' ? 'Browser' : client)

export const describeClient = (client: string, kind: ClientKind | null): string =>
  kind === 'web' ? 'Browser' : `streaming software “${client}”`
