/**
 * `npm run soak -- <name>`: the long form of a test whose short form is part of `.ci/run`. Run it once for a change
 * that concerns it, and put the figure with its date into docs/proof.md. Further arguments go to the command.
 */
import { spawn } from 'node:child_process'
import { parseArgs } from 'node:util'

interface Soak {
  /** What it does, and how long that takes on two cores. */
  readonly what: string
  readonly command: readonly string[]
  readonly variables?: Readonly<Record<string, string>>
  /** Arguments that go to the command as variables, since it is a test. */
  readonly options?: Readonly<Record<string, string>>
}

const node = ['node', '--import', 'tsx']
const systemTest = ['npx', 'vitest', 'run', '--config', 'test/system/vitest.config.ts']

const soaks: Readonly<Record<string, Soak>> = {
  chaos: {
    what: 'kills, pauses and cuts off processes for an hour (70 minutes)',
    command: [...node, 'test/chaos/run.ts', '--seconds', '3600'],
  },
  simulation: {
    what: 'takes 10,000 steps with a fleet of 200 relays (4 minutes)',
    command: [...systemTest, 'test/system/fleet-simulation.test.ts'],
    variables: { FLEET_SIMULATION_STEPS: '10000' },
  },
  contract: {
    what: 'sends ten times as many generated requests to each operation (20 minutes)',
    command: [...systemTest, 'test/system/http-contract.test.ts'],
    variables: { HTTP_CONTRACT_EXAMPLES: '100' },
  },
  fuzz: {
    what: 'sends forged and damaged datagrams to all ports of three relays for ten minutes, or --seconds, of a --seed (11 minutes)',
    command: [...systemTest, 'test/system/relay-fuzz.test.ts'],
    variables: { RELAY_FUZZ_SECONDS: '600' },
    options: { seed: 'RELAY_FUZZ_SEED', seconds: 'RELAY_FUZZ_SECONDS' },
  },
  replacement: {
    what: 'kills fifty relays during a stream, with a warm instance and without, of a --seed (25 minutes)',
    command: [...systemTest, 'test/system/relay-replacement.test.ts'],
    variables: { RELAY_REPLACEMENT_KILLS: '50' },
    options: { seed: 'RELAY_REPLACEMENT_SEED', kills: 'RELAY_REPLACEMENT_KILLS' },
  },
  obs: {
    what: 'disturbs streams that OBS plays, and writes the seconds without a fresh picture to docs/proof/obs.json (4 minutes)',
    command: [...systemTest, 'test/system/obs.test.ts'],
    variables: { OBS_PROOF: 'docs/proof/obs.json' },
  },
  picture: {
    what: 'feeds the stage 10 million damaged packets, then kills fifty publishers in each mode, of a --seed, and writes docs/proof/picture.json (50 minutes)',
    command: [
      'sh',
      '-c',
      `npx vitest run test/relay-node/transport-stream/fuzz.test.ts && ${systemTest.join(' ')} test/system/picture.test.ts`,
    ],
    variables: { PICTURE_FUZZ_PACKETS: '10000000', PICTURE_PROOF: 'docs/proof/picture.json' },
    options: { seed: 'PICTURE_SEED', kills: 'PICTURE_KILLS', packets: 'PICTURE_FUZZ_PACKETS' },
  },
  'picture-obs': {
    what: 'lets the publisher of a stream in OBS die 40 times in half an hour or --minutes, of a --seed, with --mode hold, freeze, slate or off, and writes docs/proof/picture-obs-MODE.json (32 minutes)',
    command: [...systemTest, 'test/system/obs-picture.test.ts'],
    variables: { PICTURE_OBS_MINUTES: '30', PICTURE_OBS_PROOF: 'docs/proof/picture-obs' },
    options: { minutes: 'PICTURE_OBS_MINUTES', seed: 'PICTURE_OBS_SEED', mode: 'PICTURE_OBS_MODE' },
  },
  'obs-script': {
    what: 'switches scenes of OBS by the script over a bad network, of a --seed, for half an hour or --seconds (32 minutes)',
    command: [...systemTest, 'test/system/obs-script-network.test.ts'],
    variables: { OBS_SCRIPT_SECONDS: '1800' },
    options: { seed: 'OBS_SCRIPT_SEED', seconds: 'OBS_SCRIPT_SECONDS' },
  },
  load: {
    what: 'runs 1,000 plugins and 2,000 relays on one worker for ten minutes (15 minutes)',
    command: [...node, 'bench/load-run/run.ts'],
  },
}

const [name = '', ...more] = process.argv.slice(2)
const soak = soaks[name]
if (soak === undefined) {
  const list = Object.entries(soaks).map(([each, { what }]) => `  ${each.padEnd(11)} ${what}`)
  process.stderr.write(`usage: npm run soak -- <name>\n\n${list.join('\n')}\n`)
  process.exit(2)
}
process.stderr.write(`[soak] ${name} ${soak.what}\n`)
const [program = '', ...args] = [...soak.command, ...(soak.options === undefined ? more : [])]
const variables = { ...soak.variables, ...readOptions(soak.options ?? {}) }
const child = spawn(program, args, { stdio: 'inherit', env: { ...process.env, ...variables } })
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
child.on('error', (error) => {
  process.stderr.write(`[soak] ${program} could not be started: ${error.message}\n`)
  process.exit(1)
})
child.on('exit', (code) => process.exit(code ?? 1))

function readOptions(options: Readonly<Record<string, string>>): Record<string, string> {
  const names = Object.keys(options)
  if (names.length === 0) return {}
  const { values } = parseArgs({
    args: more,
    options: Object.fromEntries(names.map((option) => [option, { type: 'string' as const }])),
  })
  return Object.fromEntries(Object.entries(values).map(([option, value]) => [options[option] ?? '', String(value)]))
}
