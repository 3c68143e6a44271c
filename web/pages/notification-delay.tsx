/** For how long a stream has to be lost or weak before its account is notified. */

/** Undefined for an older API, which knows no delay. */
export const StreamDelay = ({ seconds }: { readonly seconds: number | undefined }) =>
  seconds === undefined ? null : (
    <div class="stream-delay">
      <label for="stream_delay_seconds">Seconds before a message that the stream is lost or weak</label>
      <input
        id="stream_delay_seconds"
        name="stream_delay_seconds"
        type="number"
        inputmode="numeric"
        min="0"
        max="600"
        step="1"
        required
        value={seconds}
        aria-describedby="stream_delay_hint"
      />
      <p class="muted" id="stream_delay_hint">
        You get none when the stream is back within this time, nor more than six of a kind in an hour. A stream that you
        end in your app counts as lost while its relay runs.
      </p>
    </div>
  )

/** Undefined for a form without the field. Text that is no number becomes NaN, which the API refuses. */
export function readStreamDelay(form: URLSearchParams): number | undefined {
  const text = form.get('stream_delay_seconds')?.trim()
  return text ? Number(text) : undefined
}
