/** A table of measured times. */

interface Measurement {
  readonly name: string
  readonly what: string
  /** A number, or a range as text. */
  readonly seconds: number | string
}

interface MeasuredTimesProps {
  readonly measurements: readonly Measurement[]
  /** With what they were measured. */
  readonly how: string
}

export const MeasuredTimes = ({ measurements, how }: MeasuredTimesProps) => (
  <>
    <table class="table measured">
      <thead>
        <tr>
          <th scope="col">What happens</th>
          <th scope="col" class="number">
            Time
          </th>
        </tr>
      </thead>
      <tbody>
        {measurements.map(({ name, what, seconds }) => (
          <tr key={name}>
            <td>{what}</td>
            <td class="number seconds" data-measured={name} data-seconds={seconds}>
              {seconds} s
            </td>
          </tr>
        ))}
      </tbody>
    </table>
    <p class="muted">{how}</p>
  </>
)
