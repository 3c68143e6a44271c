/**
 * A table of the console: it scrolls sideways where its columns do not fit, and each row is a card on narrow screens.
 */
import type { ComponentChildren } from 'preact'

export interface Column<Row> {
  readonly heading: string
  readonly class?: string
  readonly cell: (row: Row) => ComponentChildren
}

interface ScrollingTableProps<Row> {
  readonly label: string
  /** The first one names the row. */
  readonly columns: readonly Column<Row>[]
  /** Shown instead of a table without rows. */
  readonly empty: string
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  /** `data-` attributes of a row, by which tests identify it. */
  readonly dataOf: (row: Row) => Readonly<Record<`data-${string}`, string>>
}

export const ScrollingTable = <Row,>({ label, columns, empty, rows, keyOf, dataOf }: ScrollingTableProps<Row>) =>
  rows.length === 0 ? (
    <p class="card muted">{empty}</p>
  ) : (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard can then scroll it
    <section class="card flush table-scroll" tabIndex={0} aria-label={label}>
      <table class="table as-cards">
        <thead>
          <tr>
            {columns.map(({ heading }) => (
              <th key={heading} scope="col">
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} {...dataOf(row)}>
              {columns.map((column, index) =>
                index === 0 ? (
                  <th key={column.heading} scope="row" class={column.class}>
                    {column.cell(row)}
                  </th>
                ) : (
                  <td key={column.heading} data-label={column.heading} class={column.class}>
                    {/* One box, so that a card shows it beside the name of its column. */}
                    <div>{column.cell(row)}</div>
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
