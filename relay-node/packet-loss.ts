/**
 * Counts lost packets of a publisher from the sequence numbers that pass the gate, so that it works with every engine.
 */
import { advance, distanceBetween, flowWindow, jumpMax, rememberedMax } from './sequence-numbers.ts'

export class PacketLoss {
  /** By the low bits of a sequence number: the number plus one. */
  readonly #seen = new Uint32Array(rememberedMax)
  #acknowledged: number | undefined
  /** Packets that arrived by retransmission only. */
  recovered = 0
  /** Packets that the receiver has given up. */
  dropped = 0

  /** @returns whether no copy of the packet has arrived before. */
  receive(sequenceNumber: number, isRetransmitted: boolean): boolean {
    if (this.hasArrived(sequenceNumber)) return false
    this.#seen[sequenceNumber % rememberedMax] = sequenceNumber + 1
    this.#acknowledged ??= sequenceNumber
    if (isRetransmitted) this.recovered += 1
    return true
  }

  hasArrived(sequenceNumber: number): boolean {
    return this.#seen[sequenceNumber % rememberedMax] === sequenceNumber + 1
  }

  /** Whether the receiver may expect a packet with this number now. */
  isUnderWay(sequenceNumber: number): boolean {
    return (
      this.#acknowledged !== undefined && Math.abs(distanceBetween(this.#acknowledged, sequenceNumber)) <= flowWindow
    )
  }

  /** @param next the number after the last packet that the receiver has received or given up. */
  acknowledge(next: number): void {
    if (this.#acknowledged === undefined) return
    const distance = distanceBetween(this.#acknowledged, next)
    // An acknowledgement that arrives after a later one, or one of another stream.
    if (distance < 0 || distance > jumpMax) return
    for (let offset = 0; offset < distance; offset += 1) {
      if (!this.hasArrived(advance(this.#acknowledged, offset))) this.dropped += 1
    }
    this.#acknowledged = next
  }
}
