/** The loss that is read from sequence numbers and acknowledgements. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { PacketLoss } from '../../relay-node/packet-loss.ts'

const sequenceMax = 0x7fff_ffff

test('a stream without loss has none, in any order of arrival', () => {
  const loss = new PacketLoss()
  for (const number of [10, 12, 11, 13]) loss.receive(number, false)
  loss.acknowledge(14)
  expect(loss).toMatchObject({ recovered: 0, dropped: 0 })
})

test('a retransmission counts once, and not when the packet has arrived before', () => {
  const loss = new PacketLoss()
  loss.receive(10, false)
  loss.receive(10, true)
  loss.receive(11, true)
  loss.receive(11, true)
  expect(loss.recovered).toBe(1)
})

test('a packet that is acknowledged without having arrived is dropped', () => {
  const loss = new PacketLoss()
  for (const number of [10, 13]) loss.receive(number, false)
  loss.acknowledge(14)
  loss.acknowledge(14)
  loss.acknowledge(12)
  expect(loss.dropped).toBe(2)
})

test('counts continue where sequence numbers wrap', () => {
  const loss = new PacketLoss()
  for (const number of [sequenceMax - 1, 0, 1]) loss.receive(number, false)
  loss.acknowledge(2)
  expect(loss).toMatchObject({ recovered: 0, dropped: 1 })
})

test('a stream of which some packets arrive late and some never has exactly these', () => {
  const fates = fc.array(fc.constantFrom('arrives', 'is repeated', 'is lost'), { minLength: 1, maxLength: 500 })
  fc.assert(
    fc.property(fates, fc.integer({ min: 0, max: sequenceMax }), (packets, first) => {
      const loss = new PacketLoss()
      const numberOf = (index: number) => (first + index) % (sequenceMax + 1)
      // The first one starts the count.
      loss.receive(first, false)
      packets.forEach((fate, index) => {
        if (fate !== 'is lost') loss.receive(numberOf(index + 1), fate === 'is repeated')
      })
      loss.acknowledge(numberOf(packets.length + 1))
      const count = (fate: string) => packets.filter((packet) => packet === fate).length
      expect(loss).toMatchObject({ recovered: count('is repeated'), dropped: count('is lost') })
    }),
  )
})

test('an acknowledgement of another stream changes nothing', () => {
  const loss = new PacketLoss()
  loss.acknowledge(5)
  loss.receive(10, false)
  loss.acknowledge(1_000_000)
  expect(loss.dropped).toBe(0)
})
