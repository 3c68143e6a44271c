/** The acts of operators on a relay session, each with a reason. */
import { ActForm } from './act-form.tsx'
import type { OperatorSession } from './operator-replies.ts'

export const SessionActs = ({ session }: { readonly session: OperatorSession }) => {
  const path = `/operator/sessions/${session.session_id}`
  if (session.state === 'stopped') return null
  return (
    <section class="card" aria-labelledby="acts">
      <h2 id="acts">Act on this session</h2>
      <div class="acts">
        <ActForm
          id="disconnect"
          action={`${path}/disconnect`}
          label="Disconnect"
          explanation="Ends the relay at once, and the stream with it. It cannot be resumed."
          isDangerous
        >
          <PublicReason id="disconnect" />
        </ActForm>
        <ActForm
          id="transition"
          action={`${path}/transition`}
          label="Make a transition by hand"
          explanation="The workflow refuses a transition that is not legal from the present state."
        >
          <div class="field">
            <label for="transition-to">To the state</label>
            <select id="transition-to" name="to">
              {['active', 'grace', 'stopped', 'provisioning'].map((state) => (
                <option key={state} value={state}>
                  {state}
                </option>
              ))}
            </select>
          </div>
          <PublicReason id="transition" />
        </ActForm>
      </div>
    </section>
  )
}

const publicReasonLengthMax = 200

const PublicReason = ({ id }: { readonly id: string }) => (
  <div class="field">
    <label for={`${id}-public-reason`}>Public reason (optional)</label>
    <input
      id={`${id}-public-reason`}
      name="public_reason"
      maxlength={publicReasonLengthMax}
      autocomplete="off"
      aria-describedby={`${id}-public-reason-hint`}
    />
    <p id={`${id}-public-reason-hint`} class="muted">
      The owner reads it in the history of the relay. The reason below stays hidden.
    </p>
  </div>
)

/** As a part of the body of a request; empty without one. */
export function publicReasonOf(form: URLSearchParams): { readonly public_reason?: string } {
  const text = form.get('public_reason')?.trim() ?? ''
  return text === '' ? {} : { public_reason: text.slice(0, publicReasonLengthMax) }
}
