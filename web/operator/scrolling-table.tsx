/** A table of the console that scrolls sideways on narrow screens. */
import { type ComponentChildren, toChildArray } from 'preact'

interface ScrollingTableProps {
  readonly label: string
  readonly headings: readonly string[]
  /** Shown instead of a table without rows. */
  readonly empty: string
  /** Its rows. */
  readonly children: ComponentChildren
}

export const ScrollingTable = ({ label, headings, empty, children }: ScrollingTableProps) =>
  toChildArray(children).length === 0 ? (
    <p class="card muted">{empty}</p>
  ) : (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard can then scroll it
    <section class="card flush table-scroll" tabIndex={0} aria-label={label}>
      <table class="table">
        <thead>
          <tr>
            {headings.map((heading) => (
              <th key={heading} scope="col">
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  )
