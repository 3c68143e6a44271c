/** The operators: they end relays, grant plans, and disable accounts. */
import type { AccountRecord } from './journal.ts'
import type { Plugin } from './plugins.ts'
import type { Requests } from './requests.ts'

export class Operators {
  readonly #headers: Readonly<Record<string, string>>

  constructor(
    readonly requests: Requests,
    password: string,
  ) {
    this.#headers = { Authorization: `Basic ${Buffer.from(`operator:${password}`).toString('base64')}` }
  }

  #post<Body>(kind: string, path: string, body: object) {
    const call = { kind, method: 'post', path: `/admin/${path}`, body, headers: this.#headers } as const
    return this.requests.until<Body>({ ...call, refusals: ['not_found'] })
  }

  async disconnect(sessionId: string): Promise<void> {
    const reply = await this.#post('operator_disconnect', `sessions/${sessionId}/disconnect`, { reason: 'chaos' })
    if (reply?.status !== 200) return
    const { sentAt } = reply
    this.requests.journal.stops.push({ sessionId, by: 'operator', sentAt, answeredAt: Date.now() })
  }

  /** Grants a plan that ends after this time. */
  async grant({ userId }: Plugin, forMillis: number): Promise<void> {
    const until = Date.now() + forMillis
    const body = { plan_tier: 'paid', addons: 0, until: new Date(until).toISOString() }
    const reply = await this.#post('operator_grant', `users/${userId}/grant`, body)
    if (reply?.status === 200) this.#record('grant', userId, reply.sentAt, until)
  }

  async setRelayAccess({ userId }: Plugin, isEnabled: boolean): Promise<void> {
    const body = { enabled: isEnabled, reason: 'chaos' }
    const reply = await this.#post('operator_relay_access', `users/${userId}/relay-access`, body)
    if (reply?.status === 200) this.#record(isEnabled ? 'relays_enabled' : 'relays_disabled', userId, reply.sentAt)
  }

  /** Disables an account for good. Its access token is refused from then on. */
  async disable(plugin: Plugin): Promise<void> {
    const { userId, access } = plugin
    plugin.isDisabled = true
    const reply = await this.#post('operator_disable', `users/${userId}/disable`, { disabled: true, reason: 'chaos' })
    if (reply?.status !== 200) return
    this.#record('disabled', userId, reply.sentAt)
    if (access) plugin.recordEnd(access, 'account disabled')
    await plugin.probeEnded()
  }

  #record(type: AccountRecord['type'], userId: string, sentAt: number, until: number | null = null): void {
    this.requests.journal.accountChanges.push({ type, userId, sentAt, answeredAt: Date.now(), until })
  }
}
