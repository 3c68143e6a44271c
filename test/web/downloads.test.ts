/** Files that visitors download. */
import { expect, test } from 'vitest'
import { startApiDouble } from '../support/api-double.ts'
import { startSite } from '../support/site.ts'

const site = await startSite(await startApiDouble())

test('the script for OBS is a file with the address of the site, for visitors without an account too', async () => {
  const reply = await site.browser().request('GET', '/downloads/relay-control.py')
  expect(reply.status).toBe(200)
  expect(reply.headers.get('content-type')).toBe('text/x-python; charset=utf-8')
  expect(reply.headers.get('content-disposition')).toBe('attachment; filename="relay-control.py"')
  expect(reply.text).toContain(`\nDEFAULT_SERVICE = "${site.url}"\n`)
  expect(reply.text).toContain('def script_load(settings):')
})

test('no other file is to be had', async () => {
  for (const path of ['/downloads/', '/downloads/relay-control', '/downloads/..%2fpackage.json'])
    expect((await site.browser().request('GET', path)).status, path).toBe(404)
})
