/** The fields of the sign-in forms. */
import type { Problem } from './messages.tsx'

interface FieldProps {
  readonly problem?: Problem | undefined
}

/** Marks the field that the problem is about, and refers to the texts that describe it. */
function describe(name: string, problem: Problem | undefined, ...descriptionIds: string[]) {
  const isInvalid = problem?.field === name
  const ids = [...(isInvalid ? ['problem'] : []), ...descriptionIds]
  return {
    ...(isInvalid ? { 'aria-invalid': true, autofocus: true } : {}),
    ...(ids.length > 0 ? { 'aria-describedby': ids.join(' ') } : {}),
  }
}

export const EmailField = ({ value, problem }: FieldProps & { readonly value: string }) => (
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
      {...describe('email', problem)}
    />
  </div>
)

export const PasswordField = ({ problem }: FieldProps) => (
  <div class="field">
    <PasswordLabel>Password</PasswordLabel>
    <input
      id="password"
      name="password"
      type="password"
      autocomplete="current-password"
      required
      {...describe('password', problem)}
    />
  </div>
)

export const NewPasswordField = ({ problem }: FieldProps) => (
  <div class="field">
    <PasswordLabel>New password</PasswordLabel>
    <p class="muted" id="password-rules">
      Use at least 10 characters. Common passwords are not accepted; a few unrelated words work well.
    </p>
    <input
      id="password"
      name="password"
      type="password"
      autocomplete="new-password"
      minlength={10}
      required
      {...describe('password', problem, 'password-rules')}
    />
  </div>
)

/** `site.js` shows the button and toggles the field between hidden and visible text. */
const PasswordLabel = ({ children }: { readonly children: string }) => (
  <div class="row apart">
    <label for="password">{children}</label>
    <button type="button" class="quiet shows" data-shows="password" hidden>
      Show<span class="unseen"> password</span>
    </button>
  </div>
)
