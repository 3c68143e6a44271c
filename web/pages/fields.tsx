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

interface EmailFieldProps extends FieldProps {
  readonly value: string
  readonly label?: string
}

export const EmailField = ({ value, problem, label = 'Email address' }: EmailFieldProps) => (
  <div class="field">
    <label for="email">{label}</label>
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

interface PasswordFieldProps extends FieldProps {
  /** Name and id of the field. */
  readonly name?: string
  readonly label?: string
}

export const PasswordField = ({ problem, name = 'password', label = 'Password' }: PasswordFieldProps) => (
  <div class="field">
    <PasswordLabel name={name}>{label}</PasswordLabel>
    <input
      id={name}
      name={name}
      type="password"
      autocomplete="current-password"
      required
      {...describe(name, problem)}
    />
  </div>
)

export const NewPasswordField = ({ problem, name = 'password' }: Omit<PasswordFieldProps, 'label'>) => (
  <div class="field">
    <PasswordLabel name={name}>New password</PasswordLabel>
    <p class="muted" id="password-rules">
      Use at least 10 characters. Common passwords are not accepted; a few unrelated words work well.
    </p>
    <input
      id={name}
      name={name}
      type="password"
      autocomplete="new-password"
      minlength={10}
      required
      {...describe(name, problem, 'password-rules')}
    />
  </div>
)

/** `site.js` shows the button and toggles the field between hidden and visible text. */
const PasswordLabel = ({ name, children }: { readonly name: string; readonly children: string }) => (
  <div class="row apart">
    <label for={name}>{children}</label>
    <button type="button" class="quiet shows" data-shows={name} hidden>
      Show<span class="unseen"> password</span>
    </button>
  </div>
)
