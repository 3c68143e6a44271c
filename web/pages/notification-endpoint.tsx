/** The webhook or Discord channel of an account: its state, its forms, and its signing secret, which is shown once. */
import { Icon } from '../icons.tsx'
import { Day } from '../time-text.tsx'
import type { Problem } from './messages.tsx'
import { endpointTypeTexts, type NotificationEndpoint } from './notification-texts.ts'

interface EndpointProps {
  readonly endpoint: NotificationEndpoint | null
  /** The address that was refused, and why. */
  readonly refused: { readonly type: string; readonly url: string; readonly problem: Problem } | undefined
}

export const Endpoint = ({ endpoint, refused }: EndpointProps) => (
  <section class="card" aria-labelledby="endpoint" data-endpoint={endpoint?.type ?? 'none'}>
    <h2 id="endpoint">Webhook or Discord</h2>
    <p class="muted">
      Besides email, notifications can go to one address: a Discord channel, or a webhook of your own.{' '}
      <a href="/help/webhooks">How to receive webhooks</a>
    </p>
    {endpoint === null ? null : <EndpointState endpoint={endpoint} />}
    {endpoint === null || refused ? (
      <EndpointForm refused={refused} />
    ) : (
      <details>
        <summary>Use another address</summary>
        <EndpointForm refused={undefined} />
      </details>
    )}
  </section>
)

/** A secret that was just created. It is hidden at first: the visitor may be sharing the screen. */
export const SigningSecret = ({ secret }: { readonly secret: string }) => (
  <div class="notice stack" role="status" data-notice="signing_secret">
    <p>Save the signing secret now. It is not shown again. Your server verifies each notification with it.</p>
    <details data-secret>
      <summary>Show signing secret</summary>
      <code id="signing-secret">{secret}</code>
    </details>
    <div>
      <button class="second scripted" type="button" data-copy="signing-secret">
        <span data-label>Copy</span>
        <span class="unseen"> signing secret</span>
      </button>
    </div>
    <p class="unseen" role="status" data-announcements />
  </div>
)

const disabledTexts: Readonly<Record<NonNullable<NotificationEndpoint['disabled_reason']>, string>> = {
  gone: 'It answered that it no longer exists, so nothing is sent to it. Save its address again to turn it on.',
  failing: 'It failed for several days, so nothing is sent to it. Save its address again to turn it on.',
}

const EndpointState = ({ endpoint }: { readonly endpoint: NotificationEndpoint }) => (
  <>
    <dl class="facts">
      <dt>Type</dt>
      <dd class="row">
        {endpointTypeTexts[endpoint.type]}
        <span class={endpoint.disabled_at ? 'badge bad' : 'badge good'}>{endpoint.disabled_at ? 'Off' : 'On'}</span>
      </dd>
      <dt>Address</dt>
      <dd class="code">{endpoint.masked_url}</dd>
      <dt>Since</dt>
      <dd>
        <Day at={endpoint.created_at} />
      </dd>
    </dl>
    {endpoint.disabled_reason ? (
      <p class="warning" data-disabled={endpoint.disabled_reason}>
        {disabledTexts[endpoint.disabled_reason]}
      </p>
    ) : null}
    <div class="row">
      {endpoint.disabled_at ? null : <EndpointAction action="test" text="Send a test" icon="send" />}
      {endpoint.type === 'webhook' ? (
        <EndpointAction action="rotate" text="Replace signing secret" icon="key-round" />
      ) : null}
      <EndpointAction action="remove" text="Remove" icon="trash" style="danger" />
    </div>
  </>
)

interface EndpointActionProps {
  readonly action: string
  readonly text: string
  readonly icon: 'send' | 'key-round' | 'trash'
  readonly style?: string
}

const EndpointAction = ({ action, text, icon, style = 'second' }: EndpointActionProps) => (
  <form method="post" action={`/account/notifications/endpoint/${action}`} data-once>
    <button class={style} type="submit">
      <Icon name={icon} /> {text}
    </button>
  </form>
)

const EndpointForm = ({ refused }: Pick<EndpointProps, 'refused'>) => (
  <form class="fields" method="post" action="/account/notifications/endpoint">
    <fieldset class="plain">
      <legend>Type</legend>
      <div class="row">
        {(['discord', 'webhook'] as const).map((type) => (
          <label class="check" key={type}>
            <input type="radio" name="type" value={type} required checked={(refused?.type ?? 'discord') === type} />
            {endpointTypeTexts[type]}
          </label>
        ))}
      </div>
    </fieldset>
    <div class="field">
      <label for="url">Address</label>
      <p class="muted" id="url-rules">
        For Discord, the webhook URL from your channel’s settings under Integrations. For your own server, an https://
        URL that is reachable from the internet.
      </p>
      <input
        id="url"
        name="url"
        type="url"
        inputmode="url"
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        maxlength={2000}
        required
        placeholder="https://"
        value={refused?.url ?? ''}
        aria-describedby={refused ? 'problem url-rules' : 'url-rules'}
        {...(refused ? { 'aria-invalid': true, autofocus: true } : {})}
      />
    </div>
    <div>
      <button type="submit">Save address</button>
    </div>
  </form>
)
