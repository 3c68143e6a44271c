/** The workflows that a worker runs: the entry of their bundle. */
export { relaySession } from './relay-session.ts'
export { subscription } from './subscription.ts'
export { warmInstances } from './warm-instances.ts'
