/** Plugin logins, with the requests of the plugin and of the browser. */
import type { Client } from './api.ts'

export interface PluginLogin {
  readonly login_attempt_id: string
  readonly poll_token: string
}

export const pluginLogins = (api: Client) => ({
  startPlugin: async () => (await api.post<PluginLogin>('/auth/plugin/login/start')).body,
  pollPlugin: (attempt: PluginLogin) => api.post('/auth/plugin/login/poll', attempt),
  approvePlugin: ({ login_attempt_id }: PluginLogin, { bearer }: { readonly bearer: string }) =>
    api.post(`/auth/plugin/login/attempts/${login_attempt_id}/approve`, undefined, { bearer }),
})
