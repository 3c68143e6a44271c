/** The rules that a run must keep. Each finds its violations in the evidence, with ids and what was expected. */
import { findBillingViolations, findDeadlineViolations, findEntitlementViolations } from './entitlement-invariants.ts'
import type { Evidence } from './evidence.ts'
import {
  findConnectionViolations,
  findInstanceViolations,
  findStartViolations,
  findStuckWork,
  findTransitionViolations,
} from './session-invariants.ts'
import { findFalseReplacements, findSilenceViolations } from './silence-invariants.ts'
import { findUsageViolations } from './usage-invariants.ts'

export interface Violation {
  readonly invariant: string
  readonly text: string
}

type Find = (evidence: Evidence) => readonly string[]

export const invariants: Readonly<Record<string, Find>> = {
  'each accepted start ends with a reason': findStartViolations,
  'a connection has one live session at most': findConnectionViolations,
  'an account starts no more relays than it may use': findEntitlementViolations,
  'transitions are legal, each once, and without gaps': findTransitionViolations,
  'usage is the time that the relay ran': findUsageViolations,
  'each accepted billing event has its effect once': findBillingViolations,
  'deadlines are held': findDeadlineViolations,
  'silence ends no session while its relay cannot report': findSilenceViolations,
  'only a relay with a fault is replaced': findFalseReplacements,
  'no instance is left, and no session has two': findInstanceViolations,
  'an ended sign-in gives no access': findAccessViolations,
  'nothing is stuck': findStuckWork,
  'replies are the documented ones': ({ journal }) => [...journal.unexpected.keys()],
}

export const findViolations = (evidence: Evidence): Violation[] =>
  Object.entries(invariants).flatMap(([invariant, find]) => find(evidence).map((text) => ({ invariant, text })))

function findAccessViolations({ journal }: Evidence): string[] {
  return journal.revokedUses
    .filter(({ sentAt, endedAt, status }) => sentAt >= endedAt && status !== 401)
    .map(({ userId, ended, endedAt, sentAt, status }) => {
      const millis = sentAt - endedAt
      return `the access token of user ${userId} got ${status} ${millis} ms after it ended (${ended}), expected 401`
    })
}
