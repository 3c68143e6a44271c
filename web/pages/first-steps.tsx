/**
 * The checklist of an account's first hour: what is done, as the service itself has seen it, and what to do next. It
 * goes once everything is done, or when the visitor hides it.
 */
import type { ComponentChildren } from 'preact'
import { isUuid } from '../../domain/uuid.ts'
import type { Account, FirstSteps, Session } from '../api-replies.ts'
import { Icon } from '../icons.tsx'
import type { PageHandler, Visit } from '../page.ts'

/** Of the account whose owner has hidden the checklist in this browser. */
const hidingCookie = 'svc_hidden_first_steps'
const hiddenSeconds = 365 * 86_400

export const hide: PageHandler = ({ form }) => {
  const id = form.get('account_id') ?? ''
  const cookie = { name: hidingCookie, value: id, path: '/relays', maxAgeSeconds: hiddenSeconds } as const
  return { redirectTo: '/relays', cookies: isUuid(id) ? [{ ...cookie, sameSite: 'Strict' }] : [] }
}

/** What the checklist shows; undefined where it is not shown. */
export interface Checklist {
  readonly accountId: string
  readonly email: string | null
  readonly steps: FirstSteps
}

export function checklistOf(
  visit: Visit,
  account: Account | undefined,
  steps: FirstSteps | undefined,
): Checklist | undefined {
  if (!account || !steps || areDone(steps) || visit.cookie(hidingCookie) === account.id) return undefined
  return { accountId: account.id, email: account.email, steps }
}

/** A plan that has ended after the first hour is no first step any more. */
const areDone = ({ plan: _, ...others }: FirstSteps): boolean => Object.values(others).every((isDone) => isDone)

interface FirstStepsListProps {
  readonly checklist: Checklist | undefined
  readonly sessions: readonly Session[]
}

/** Rendered without steps too, since `relays.js` replaces this element when its version changes. */
export function FirstStepsList({ checklist, sessions }: FirstStepsListProps) {
  const ready = sessions.find(({ connect }) => connect)?.session_id
  const version = checklist ? [...Object.values(checklist.steps), ready].join(' ') : ''
  return (
    <div class="first-steps" data-part="first-steps" data-version={version}>
      {checklist ? <Steps checklist={checklist} ready={ready} /> : null}
    </div>
  )
}

interface StepsProps {
  readonly checklist: Checklist
  /** The first relay that has addresses. */
  readonly ready: string | undefined
}

const Steps = ({ checklist: { accountId, email, steps }, ready }: StepsProps) => (
  <section class="card" aria-labelledby="first-steps">
    <div class="row apart">
      <h2 id="first-steps" tabIndex={-1}>
        First steps
      </h2>
      <form method="post" action="/relays/hide-first-steps">
        <input type="hidden" name="account_id" value={accountId} />
        <button class="quiet small" type="submit">
          <Icon name="x" />
          Hide<span class="unseen"> the first steps</span>
        </button>
      </form>
    </div>
    <ol>
      <Step name="address" title="Verify your address" isDone={steps.address_verified}>
        <VerifyAddress email={email} />
      </Step>
      <Step name="plan" title="Choose a plan" isDone={steps.plan}>
        <Next to="/account#plan">See the plans</Next>
      </Step>
      <Step name="relay" title="Start a relay" isDone={steps.relay_started}>
        <Next to="#start">Go to the form</Next>
      </Step>
      <Step name="phone" title="Connect your phone" isDone={steps.phone_connected}>
        <Next to={ready ? `#kit-phone-${ready}` : '#start'}>{ready ? 'Choose your app' : 'Start a relay first'}</Next>
      </Step>
      <Step name="obs" title="Connect OBS" isDone={steps.player_connected}>
        <Next to={ready ? `#kit-obs-${ready}` : '#connect-obs'}>{ready ? 'Copy the input' : 'See the three ways'}</Next>
      </Step>
    </ol>
  </section>
)

interface StepProps {
  readonly name: string
  readonly title: string
  readonly isDone: boolean
  /** What does the next thing. */
  readonly children: ComponentChildren
}

const Step = ({ name, title, isDone, children }: StepProps) => (
  <li data-step={name} data-done={String(isDone)}>
    <span class={isDone ? 'step-title step-done' : 'step-title'}>
      <Icon name={isDone ? 'circle-check' : 'circle-dashed'} />
      <span>
        {title}
        <span class="unseen">{isDone ? ': done' : ': to do'}</span>
      </span>
    </span>
    {isDone ? null : children}
  </li>
)

const Next = ({ to, children }: { readonly to: string; readonly children: ComponentChildren }) => (
  <a class="link" href={to}>
    {children}
  </a>
)

const VerifyAddress = ({ email }: { readonly email: string | null }) =>
  email === null ? (
    <Next to="/account/security">Open Security</Next>
  ) : (
    <>
      <span class="muted">Open the link that we sent to {email}.</span>
      <form method="post" action="/account/verification">
        <button class="second small" type="submit">
          Send it again
        </button>
      </form>
    </>
  )
