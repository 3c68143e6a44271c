/** A button that opens the form of an act: its reason is required, and recorded in the audit. Works without scripts. */
import type { ComponentChildren } from 'preact'

interface ActFormProps {
  /** The path that the form is posted to. */
  readonly action: string
  /** What happens, as on the button that opens the form, such as `Disconnect`. */
  readonly label: string
  /** The consequences. */
  readonly explanation?: string
  /** Whether the act ends something or takes it away. */
  readonly isDangerous?: boolean
  /** Hidden fields. */
  readonly fields?: Readonly<Record<string, string>>
  /** More fields, above the reason. */
  readonly children?: ComponentChildren
  /** Distinguishes the forms of one page: the beginning of the ids of its fields. */
  readonly id: string
}

export const reasonLengthMax = 500

export const ActForm = ({ action, label, explanation, isDangerous, fields = {}, children, id }: ActFormProps) => (
  <details class="act" data-act={action} data-danger={isDangerous ? '' : undefined}>
    <summary>{label}</summary>
    <form class="fields" method="post" action={action}>
      {explanation ? <p class="muted">{explanation}</p> : null}
      {Object.entries(fields).map(([name, value]) => (
        <input key={name} type="hidden" name={name} value={value} />
      ))}
      {children}
      <div class="field">
        <label for={`${id}-reason`}>Reason</label>
        <input id={`${id}-reason`} name="reason" required maxlength={reasonLengthMax} autocomplete="off" />
      </div>
      <button class={isDangerous ? 'danger' : undefined} type="submit">
        {`Confirm: ${label}`}
      </button>
    </form>
  </details>
)

/** The reason of a submitted act; undefined when it is missing, which browsers prevent. */
export function reasonOf(form: URLSearchParams): string | undefined {
  const reason = form.get('reason')?.trim() ?? ''
  return reason === '' ? undefined : reason.slice(0, reasonLengthMax)
}
