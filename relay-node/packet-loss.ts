/**
 * Counts lost packets of a publisher from the sequence numbers that pass the gate, so that it works with every engine.
 */

/** The sequence number of a data packet has 31 bits. */
const sequenceMask = 0x7fff_ffff
/** Above the flow window of SRT, so that a number is still remembered when it is acknowledged. */
const remembered = 65_536
/** A jump that no loss explains. */
const jumpMax = remembered / 2

export class PacketLoss {
  /** By the low bits of a sequence number: the number plus one. */
  readonly #seen = new Uint32Array(remembered)
  #acknowledged: number | undefined
  /** Packets that arrived by retransmission only. */
  recovered = 0
  /** Packets that the receiver has given up. */
  dropped = 0

  receive(sequenceNumber: number, isRetransmitted: boolean): void {
    const slot = sequenceNumber % remembered
    if (this.#seen[slot] === sequenceNumber + 1) return
    this.#seen[slot] = sequenceNumber + 1
    this.#acknowledged ??= sequenceNumber
    if (isRetransmitted) this.recovered += 1
  }

  /** @param next the number after the last packet that the receiver has received or given up. */
  acknowledge(next: number): void {
    if (this.#acknowledged === undefined) return
    const distance = (next - this.#acknowledged) & sequenceMask
    // An acknowledgement that arrives after a later one, or one of another stream.
    if (distance > jumpMax) return
    for (let offset = 0; offset < distance; offset += 1) {
      const sequenceNumber = (this.#acknowledged + offset) & sequenceMask
      if (this.#seen[sequenceNumber % remembered] !== sequenceNumber + 1) this.dropped += 1
    }
    this.#acknowledged = next
  }
}
