/** Files that visitors download: the script for OBS, with the address of this site in it. */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Router } from '@koa/router'

const scriptFile = fileURLToPath(new URL('../obs/relay-control.py', import.meta.url))
/** The line of the script that the address belongs to. */
const addressLine = 'DEFAULT_SERVICE = ""'

const scriptPath = '/downloads/relay-control.py'

/** @param siteUrl without a slash at its end. */
export function addDownloadRoutes(router: Router, siteUrl: string): void {
  router.get(scriptPath, async (ctx) => {
    const script = await readFile(scriptFile, 'utf8')
    ctx.set('Content-Disposition', 'attachment; filename="relay-control.py"')
    ctx.set('Cache-Control', 'no-cache')
    ctx.type = 'text/x-python; charset=utf-8'
    // A string of JSON is one of Python too.
    ctx.body = script.replace(addressLine, () => `DEFAULT_SERVICE = ${JSON.stringify(siteUrl)}`)
  })
}
