/** The parts of the script for OBS that need no OBS: its tests in Python, and its WebSocket against that of Node. */
import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import { temporaryFolder } from '../support/folders.ts'

const run = promisify(execFile)
const testFolder = fileURLToPath(new URL('../obs/', import.meta.url))
const script = fileURLToPath(new URL('../../obs/relay-control.py', import.meta.url))
const environment = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' }

test('the script is valid Python', async () => {
  const folder = await temporaryFolder()
  await run('python3', ['-W', 'error', '-m', 'py_compile', script], {
    env: { ...process.env, PYTHONPYCACHEPREFIX: folder },
  })
})

test('its rule, its sign-in, its tokens and its repetitions pass their tests in Python', async () => {
  const { stderr } = await run('python3', ['-W', 'error::SyntaxWarning', '-m', 'unittest'], {
    cwd: testFolder,
    env: environment,
  })
  expect(Number(/^Ran (\d+) tests/m.exec(stderr)?.[1])).toBeGreaterThan(40)
})

/** Connects and prints each message, and at the end the code or the exception. */
const program = `
import sys
from loaded_script import relay_control as script
try:
    client = script.WebSocket(sys.argv[1], "svc.relay.v1", "the-token", silent_seconds=float(sys.argv[2]), message_bytes_max=100000)
    while True:
        print(client.receive()[:40], flush=True)
except script.Closed as closed:
    print("closed", closed.code)
except script.Refused as refused:
    print("refused", refused.status, refused.retry_after)
except script.Unreachable:
    print("unreachable")
`

/** @returns the lines that the client prints until its end. */
async function linesOf(port: number, { silentSeconds = 20 } = {}): Promise<string[]> {
  const url = `http://127.0.0.1:${port}/relay/ws?events=1`
  const child = spawn('python3', ['-c', program, url, `${silentSeconds}`], { cwd: testFolder, env: environment })
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  await once(child, 'close')
  return output.trim().split('\n')
}

async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** A server of Node's WebSocket library. */
async function serve(onConnection: (socket: WebSocket, request: IncomingMessage) => void): Promise<number> {
  const server = createServer()
  const sockets = new WebSocketServer({ server, handleProtocols: () => 'svc.relay.v1' })
  sockets.on('connection', onConnection)
  return portOf(server)
}

/** A server that completes the handshake, and then sends these bytes. */
async function sendBytes(...bytes: readonly number[]): Promise<number> {
  const server = createServer()
  server.on('upgrade', (request: IncomingMessage, socket: Socket) => {
    const accept = createHash('sha1').update(
      `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`,
    )
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept.digest('base64')}\r\nSec-WebSocket-Protocol: svc.relay.v1\r\n\r\n`,
    )
    socket.end(Buffer.from(bytes))
    socket.on('error', () => {})
  })
  return portOf(server)
}

describe('the WebSocket of the script', () => {
  test('offers the subprotocol and its token, receives messages of all lengths, and closes with the code', async () => {
    let request: IncomingMessage | undefined
    const port = await serve((socket, incoming) => {
      request = incoming
      // The last character has two bytes.
      for (const length of [7, 125, 126, 65_535, 65_536, 99_999])
        socket.send(`${`${length} `.padEnd(length - 2, 'x')}ü`)
      socket.close(4401, 'sign in again')
    })
    const lines = await linesOf(port)
    expect(lines.map((line) => line.split(' ')[0])).toEqual(['7', '125', '126', '65535', '65536', '99999', 'closed'])
    expect(lines.at(-1)).toBe('closed 4401')
    expect(request?.url).toBe('/relay/ws?events=1')
    expect(request?.headers).toMatchObject({
      authorization: 'Bearer the-token',
      'sec-websocket-protocol': 'svc.relay.v1',
    })
  })

  test('puts fragments together, also with a ping between them, which it answers', async () => {
    let pong = ''
    const port = await serve((socket) => {
      socket.on('pong', (data) => {
        pong = String(data)
        socket.send(' parts', { fin: true })
        socket.close(1000)
      })
      socket.send('three', { fin: false })
      socket.send(' whole', { fin: false })
      socket.ping('are you there')
    })
    expect(await linesOf(port)).toEqual(['three whole parts', 'closed 1000'])
    expect(pong).toBe('are you there')
  })

  test('pings a server that is silent, and gives it up when no answer comes', async () => {
    const port = await serve((socket) => {
      socket.on('ping', () => socket.pause())
    })
    const lines = await linesOf(port, { silentSeconds: 0.3 })
    expect(lines).toEqual(['unreachable'])
  })

  test('stays with a server that is silent and answers its pings', async () => {
    let pings = 0
    const port = await serve((socket) => {
      socket.on('ping', () => {
        pings += 1
        if (pings === 3) socket.close(1001)
      })
    })
    expect(await linesOf(port, { silentSeconds: 0.1 })).toEqual(['closed 1001'])
  })

  test('refuses messages that are too long, in one part or in many', async () => {
    const whole = await serve((socket) => socket.send('x'.repeat(100_001)))
    expect(await linesOf(whole)).toEqual(['closed 1009'])
    const parts = await serve((socket) => {
      for (let part = 0; part < 101; part += 1) socket.send('x'.repeat(1_000), { fin: false })
    })
    expect(await linesOf(parts)).toEqual(['closed 1009'])
  })

  test.each([
    ['a masked frame', [0x81, 0x81, 1, 2, 3, 4, 5], 1002],
    ['a frame with a reserved bit', [0xc1, 0x01, 0x61], 1002],
    ['an unknown kind of frame', [0x83, 0x00], 1002],
    ['a continuation of nothing', [0x80, 0x01, 0x61], 1002],
    ['a message within another one', [0x01, 0x01, 0x61, 0x81, 0x01, 0x61], 1002],
    ['a ping in parts', [0x09, 0x00], 1002],
    ['a ping that is too long', [0x89, 0x7e, 0x00, 0x7e], 1002],
    ['bytes instead of text', [0x82, 0x01, 0x61], 1003],
    ['text that is not UTF-8', [0x81, 0x01, 0xff], 1007],
    ['a length beyond all limits', [0x81, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], 1009],
  ])('closes after %s', async (_, bytes, code) => {
    expect(await linesOf(await sendBytes(...bytes))).toEqual([`closed ${code}`])
  })

  test('says which status refused the handshake, and how long to wait', async () => {
    const server = createServer()
    server.on('upgrade', (_, socket) => socket.end('HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n'))
    expect(await linesOf(await portOf(server))).toEqual(['refused 401 0'])
    const limited = createServer()
    limited.on('upgrade', (_, socket) => socket.end('HTTP/1.1 429 Too Many Requests\r\nRetry-After: 30\r\n\r\n'))
    expect(await linesOf(await portOf(limited))).toEqual(['refused 429 30.0'])
  })

  test('trusts no handshake without the right answer to its key', async () => {
    const server = createServer()
    server.on('upgrade', (_, socket) =>
      socket.end(
        'HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: svc.relay.v1\r\n\r\n',
      ),
    )
    expect(await linesOf(await portOf(server))).toEqual(['unreachable'])
  })

  test('says that nothing answers when the server goes away in the middle of a frame', async () => {
    expect(await linesOf(await sendBytes(0x81, 0x05, 0x61))).toEqual(['unreachable'])
  })
})
