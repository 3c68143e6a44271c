/** What the players of this relay see while no stream arrives, as the control plane sends it. */
import { isSlateDigest, type OnLoss, onLossModes } from '../domain/relay/on-loss.ts'
import { readStreamFormat, type StreamFormat } from '../domain/relay/stream-format.ts'

export interface LossPicture {
  readonly mode: OnLoss
  /** The digest of the image that the relay may need; null for none. */
  readonly slate: string | null
  /** That of the stream which the session had on a former relay; null where none is known. */
  readonly format: StreamFormat | null
}

/** Until the control plane says more, and for good where it is of a former version. */
export const noLossPicture: LossPicture = { mode: 'hold', slate: null, format: null }

/** What is missing or unknown, as of a later version, is that of {@link noLossPicture}. */
export function readLossPicture({ on_loss, slate, stream_format }: Record<string, unknown>): LossPicture {
  return {
    mode: onLossModes.find((each) => each === on_loss) ?? noLossPicture.mode,
    slate: isSlateDigest(slate) ? slate : null,
    format: readStreamFormat(stream_format) ?? null,
  }
}
