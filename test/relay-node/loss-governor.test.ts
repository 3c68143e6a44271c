/** When a bonded encoder hears that packets are lost. */
import { beforeEach, describe, expect, test } from 'vitest'
import { LossGovernor } from '../../relay-node/loss-governor.ts'
import type { NumberRange } from '../../relay-node/sequence-numbers.ts'

const latencyMillis = 2_000
const sequenceMax = 0x7fff_ffff

let arrived: Set<number>
let governor: LossGovernor

const createGovernor = (options: { latencyMillis?: number; missingMax?: number } = {}) =>
  new LossGovernor(
    {
      hasArrived: (number) => arrived.has(number),
      latencyMillis: () => options.latencyMillis ?? latencyMillis,
    },
    options.missingMax,
  )

const receive = (number: number, at: number, isRetransmitted = false) => {
  if (arrived.has(number)) return 0
  arrived.add(number)
  return governor.receive(number, isRetransmitted, at)
}

const single = (number: number): NumberRange[] => [{ first: number, last: number }]
const nothing = { first: [], again: [] }

/** A stream that has run for longer than the first seconds, whose next packet is 101. */
const settled = 10_000
function settle(): void {
  receive(99, 0)
  receive(100, settled)
}

beforeEach(() => {
  arrived = new Set()
  governor = createGovernor()
})

describe('a report about a packet', () => {
  test('that arrives in time is never made', () => {
    settle()
    receive(102, settled)
    governor.hold(single(101))
    expect(governor.due(settled + 5)).toEqual(nothing)
    receive(101, settled + 8)
    expect(governor.due(settled + 1_000)).toEqual(nothing)
    expect(governor.counters).toEqual({ held: 1, reported: 0, saved: 1 })
    expect(governor.isWaiting).toBe(false)
  })

  test('waits 10 ms and a fifth longer than the latest of the packets was late', () => {
    settle()
    receive(102, settled)
    expect(receive(101, settled + 100)).toBe(100)
    receive(104, settled + 200)
    governor.hold(single(103))
    expect(governor.due(settled + 200 + 129)).toEqual(nothing)
    expect(governor.due(settled + 200 + 130)).toEqual({ first: single(103), again: [] })
    expect(governor.counters).toMatchObject({ held: 1, reported: 1 })
  })

  test('waits for at least 150 ms in the first three seconds, when little is known', () => {
    receive(1, 0)
    receive(3, 0)
    governor.hold(single(2))
    expect(governor.due(149)).toEqual(nothing)
    expect(governor.due(150)).toEqual({ first: single(2), again: [] })
  })

  test('waits for no longer than a sixth of the latency, however late packets are', () => {
    settle()
    receive(102, settled)
    receive(101, settled + 900)
    receive(104, settled + 1_000)
    governor.hold(single(103))
    expect(governor.due(settled + 1_000 + latencyMillis / 6 - 1)).toEqual(nothing)
    expect(governor.due(settled + 1_000 + latencyMillis / 6)).toEqual({ first: single(103), again: [] })
  })

  test('is made as soon as it is due, when the engine reports later', () => {
    settle()
    receive(102, settled)
    governor.hold(single(101))
    expect(governor.due(settled + 50)).toEqual({ first: single(101), again: [] })
  })

  test('is repeated until the packet arrives', () => {
    settle()
    receive(102, settled)
    governor.hold(single(101))
    expect(governor.due(settled + 20).first).toEqual(single(101))
    const again = [400, 800, 1_200].map((millis) => governor.due(settled + 20 + millis).again)
    expect(again).toEqual([single(101), single(101), single(101)])
    receive(101, settled + 1_300, true)
    expect(governor.due(settled + 1_700)).toEqual(nothing)
    expect(governor.counters).toEqual({ held: 1, reported: 1, saved: 0 })
  })

  test('is repeated after a sixth of the latency', () => {
    settle()
    receive(102, settled)
    governor.hold(single(101))
    governor.due(settled + 20)
    expect(governor.due(settled + 20 + latencyMillis / 6 - 1).again).toEqual([])
    expect(governor.due(settled + 20 + latencyMillis / 6).again).toEqual(single(101))
  })

  test('ends when the engine has given the packet up', () => {
    settle()
    receive(102, settled)
    governor.hold(single(101))
    governor.due(settled + 20)
    governor.acknowledge(102)
    governor.acknowledge(101)
    expect(governor.due(settled + 1_000)).toEqual(nothing)
    expect(governor.isWaiting).toBe(false)
  })

  test('about what was sent during an outage counts from when the packet was due', () => {
    settle()
    receive(200, settled + 1_000)
    governor.hold([{ first: 101, last: 199 }])
    // One of them was due every 10 ms.
    expect(governor.due(settled + 1_000).first).toEqual([{ first: 101, last: 199 }])
    receive(202, settled + 2_000)
    governor.hold(single(201))
    expect(governor.due(settled + 2_009).first).toEqual([])
    expect(governor.due(settled + 2_010).first).toEqual(single(201))
  })

  test('that the engine repeats counts once', () => {
    settle()
    receive(102, settled)
    governor.hold(single(101))
    governor.hold(single(101))
    expect(governor.counters.held).toBe(1)
  })
})

describe('what is due', () => {
  test('comes in ranges, in the order of the stream, also where the numbers wrap', () => {
    receive(sequenceMax - 2, 0)
    receive(3, settled)
    governor.hold([{ first: 1, last: 2 }])
    governor.hold([{ first: sequenceMax - 1, last: 0 }])
    arrived.add(1)
    expect(governor.due(settled + 20).first).toEqual([{ first: sequenceMax - 1, last: 0 }, ...single(2)])
  })

  test('has no packet that was not sent yet, and none of a forged report', () => {
    settle()
    receive(105, settled)
    governor.hold([{ first: 104, last: 110 }, ...single(200), ...single(1_000_000_000), { first: 103, last: 102 }])
    expect(governor.due(settled + 20).first).toEqual(single(104))
  })

  test('has no more packets than the flow window', () => {
    governor = createGovernor({ missingMax: 10 })
    settle()
    receive(130, settled)
    governor.hold([{ first: 101, last: 129 }])
    expect(governor.due(settled + 20).first).toEqual([{ first: 101, last: 110 }])
  })

  test('is nothing of the stream before a jump that no loss explains', () => {
    settle()
    receive(102, settled)
    governor.hold(single(101))
    receive(1_000_000, settled + 1)
    expect(governor.due(settled + 1_000)).toEqual(nothing)
  })
})

describe('lateness', () => {
  test('is that of the last five to ten seconds', () => {
    settle()
    receive(102, settled)
    receive(101, settled + 300)
    expect(governor.latenessMillis(settled + 4_000)).toBe(300)
    receive(104, settled + 6_000)
    receive(103, settled + 6_020)
    expect(governor.latenessMillis(settled + 7_000)).toBe(300)
    expect(governor.latenessMillis(settled + 12_000)).toBe(20)
    expect(governor.latenessMillis(settled + 60_000)).toBe(0)
  })

  test('is not that of packets that were sent again', () => {
    settle()
    receive(102, settled)
    expect(receive(101, settled + 500, true)).toBe(0)
    expect(governor.latenessMillis(settled + 500)).toBe(0)
  })
})
