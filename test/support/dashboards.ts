/** Reads the dashboards of Grafana. */
import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('../../deploy/grafana/dashboards', import.meta.url))

export interface Panel {
  readonly type: string
  readonly title: string
  readonly datasource?: { readonly uid: string }
  readonly links?: readonly { readonly url: string }[]
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } }
  readonly targets?: readonly {
    readonly datasource: { readonly uid: string }
    readonly expr: string
    readonly legendFormat: string
  }[]
}

export interface Dashboard {
  readonly name: string
  readonly uid: string
  readonly panels: readonly Panel[]
}

/** All dashboards, by the name of their file. */
export async function readDashboards(): Promise<Dashboard[]> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.json')).sort()
  return Promise.all(
    files.map(async (file) => ({
      ...(JSON.parse(await readFile(`${folder}/${file}`, 'utf8')) as Dashboard),
      name: file.replace(/\.json$/, ''),
    })),
  )
}
