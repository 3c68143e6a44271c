/**
 * What the database stores beside what the workflow answers. They differ while a change is on its way, or when it is
 * stuck.
 */
import type { ComponentChildren } from 'preact'

export interface ComparedValue {
  readonly label: string
  readonly stored: string | null
  readonly live: string | null
  /** How a value is shown; as text unless given. */
  readonly render?: (value: string) => ComponentChildren
}

interface ComparisonProps {
  readonly label: string
  readonly values: readonly ComparedValue[]
}

export const Comparison = ({ label, values }: ComparisonProps) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard can then scroll it
  <section class="table-scroll compared" tabIndex={0} aria-label={label}>
    <table class="table">
      <thead>
        <tr>
          <th scope="col">Value</th>
          <th scope="col">Database</th>
          <th scope="col">Workflow</th>
        </tr>
      </thead>
      <tbody>
        {values.map((value) => (
          <ComparedRow key={value.label} {...value} />
        ))}
      </tbody>
    </table>
  </section>
)

const ComparedRow = ({ label, stored, live, render = String }: ComparedValue) => {
  const isSame = stored === live
  const show = (value: string | null) => (value === null ? <span class="muted">none</span> : render(value))
  return (
    <tr class={isSame ? undefined : 'differs'} data-compared={label} data-differs={isSame ? undefined : ''}>
      <th scope="row">{label}</th>
      <td>{show(stored)}</td>
      <td>
        {show(live)}
        {isSame ? null : <span class="badge warn">differs</span>}
      </td>
    </tr>
  )
}
