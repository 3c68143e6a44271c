/** What the forms of signing in are made of. */
import type { Problem } from './refusal-text.ts'

interface Problematic {
  readonly problem?: Problem | undefined
}

/** What went wrong with the form that was just sent. Read out by itself, and once more at the field that it is about. */
export const ProblemNote = ({ problem }: Problematic) =>
  problem ? (
    <p class="problem" role="alert" id="problem">
      {problem.text}
    </p>
  ) : null

/** Ids of what describes a field. */
const describedBy = (name: string, problem: Problem | undefined, ...others: string[]) => {
  const ids = [...(problem?.field === name ? ['problem'] : []), ...others]
  return ids.length > 0 ? { 'aria-describedby': ids.join(' ') } : {}
}

const wrong = (name: string, problem: Problem | undefined) =>
  problem?.field === name ? { 'aria-invalid': true, autofocus: true } : {}

export const EmailField = ({ value, problem }: Problematic & { readonly value: string }) => (
  <div class="field">
    <label for="email">Email address</label>
    <input
      id="email"
      name="email"
      type="email"
      inputmode="email"
      autocomplete="username"
      autocapitalize="none"
      spellcheck={false}
      maxlength={254}
      required
      value={value}
      {...wrong('email', problem)}
      {...describedBy('email', problem)}
    />
  </div>
)

/** One that is known already. */
export const PasswordField = ({ problem }: Problematic) => (
  <div class="field">
    <PasswordLabel>Password</PasswordLabel>
    <input
      id="password"
      name="password"
      type="password"
      autocomplete="current-password"
      required
      {...wrong('password', problem)}
      {...describedBy('password', problem)}
    />
  </div>
)

/** One that is being chosen: what it has to be stands there before anything is typed. */
export const NewPasswordField = ({ problem }: Problematic) => (
  <div class="field">
    <PasswordLabel>New password</PasswordLabel>
    <p class="muted" id="password-rules">
      At least 10 characters, and none of the passwords that everybody uses. A few words in a row are good.
    </p>
    <input
      id="password"
      name="password"
      type="password"
      autocomplete="new-password"
      minlength={10}
      required
      {...wrong('password', problem)}
      {...describedBy('password', problem, 'password-rules')}
    />
  </div>
)

/** The button is for those with script; a password that is shown is typed right on a phone. */
const PasswordLabel = ({ children }: { readonly children: string }) => (
  <div class="row apart">
    <label for="password">{children}</label>
    <button type="button" class="quiet shows" data-shows="password" hidden>
      Show<span class="unseen"> password</span>
    </button>
  </div>
)
