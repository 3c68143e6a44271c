/**
 * Sends datagrams with forged sources, and counts those between two ports, by a program with raw sockets. It needs
 * root.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

const program = `
import json, socket, struct, sys
sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
# Receives a copy of each datagram of this machine.
listener = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) if 'count' in sys.argv else None
if listener:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    listener.setblocking(False)
counts = {}
for line in sys.stdin:
    command = json.loads(line)
    answer = {}
    for source, source_port, target, target_port, payload in command.get('send', []):
        data = bytes.fromhex(payload)
        ip = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 28 + len(data), 0, 0, 64, 17, 0, socket.inet_aton(source), socket.inet_aton(target))
        try:
            sender.sendto(ip + struct.pack('!HHHH', source_port, target_port, 8 + len(data), 0) + data, (target, 0))
        except OSError:
            answer['refused'] = answer.get('refused', 0) + 1
    while listener:
        try:
            packet = listener.recv(65536)
        except BlockingIOError:
            break
        header = (packet[0] & 15) * 4
        ports = struct.unpack('!HH', packet[header:header + 4])
        counts[ports] = counts.get(ports, 0) + 1
    if 'between' in command:
        first, second = command['between']
        answer['count'] = counts.get((first, second), 0) + counts.get((second, first), 0)
    print(json.dumps(answer), flush=True)
`

export interface ForgedDatagram {
  readonly source: string
  readonly sourcePort: number
  readonly target: string
  readonly targetPort: number
  readonly payload: Buffer
}

export interface RawSockets {
  /** Resolves with how many the system has refused to send. */
  send(datagrams: readonly ForgedDatagram[]): Promise<number>
  /** How many datagrams have passed between two ports of this machine since the start, in both directions. */
  countBetween(port: number, other: number): Promise<number>
  close(): Promise<void>
}

/** @param isCounting costs memory for each pair of ports. */
export async function openRawSockets({ isCounting = true } = {}): Promise<RawSockets> {
  const child = spawn('python3', ['-c', program, ...(isCounting ? ['count'] : [])], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const run = async (command: object): Promise<{ refused?: number; count?: number }> => {
    child.stdin.write(`${JSON.stringify(command)}\n`)
    const { value } = await answers.next()
    if (value === undefined) throw new Error('the program with raw sockets has ended')
    return JSON.parse(value)
  }
  // Its sockets are open when it answers.
  await run({})
  return {
    send: async (datagrams) => {
      const send = datagrams.map((datagram) => [
        datagram.source,
        datagram.sourcePort,
        datagram.target,
        datagram.targetPort,
        datagram.payload.toString('hex'),
      ])
      return (await run({ send })).refused ?? 0
    },
    countBetween: async (port, other) => (await run({ between: [port, other] })).count ?? 0,
    async close() {
      child.kill('SIGKILL')
      await ended
    },
  }
}
