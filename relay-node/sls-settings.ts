/** The settings of the engine `sls`. They are required with it, and ignored with any other engine. */
import type { SlsServer } from '../domain/relay/engines.ts'
import {
  type Check,
  type Environment,
  headerTextProblem,
  isBetween,
  isHeaderText,
  isHttpUrl,
} from './setting-checks.ts'

const isPort = (text: string) => /^\d+$/.test(text) && isBetween(1, 65_535)(text)
const portProblem = 'is not a port from 1 to 65535'

export const listSlsChecks = (env: Environment): Record<string, Check> => ({
  SVC_RELAY_SLS_API_URL: { value: env.SVC_RELAY_SLS_API_URL, isValid: isHttpUrl, problem: 'is not an http(s) URL' },
  SVC_RELAY_SLS_API_KEY: { value: env.SVC_RELAY_SLS_API_KEY, isValid: isHeaderText, problem: headerTextProblem },
  SVC_RELAY_SLS_PUBLISH_PORT: { value: env.SVC_RELAY_SLS_PUBLISH_PORT, isValid: isPort, problem: portProblem },
  SVC_RELAY_SLS_PLAY_PORT: { value: env.SVC_RELAY_SLS_PLAY_PORT, isValid: isPort, problem: portProblem },
})

/** @param env checked before. */
export const slsServerOf = (env: Environment): SlsServer => ({
  apiUrl: (env.SVC_RELAY_SLS_API_URL ?? '').replace(/\/+$/, ''),
  apiKey: env.SVC_RELAY_SLS_API_KEY ?? '',
  publishPort: Number(env.SVC_RELAY_SLS_PUBLISH_PORT),
  playPort: Number(env.SVC_RELAY_SLS_PLAY_PORT),
})
