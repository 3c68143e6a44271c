/** What chats and other sites show of a link to the site. */
import { expect, test } from 'vitest'
import { startApi } from '../support/api.ts'
import { freeSiteUrl, startSite } from '../support/site.ts'

const siteUrl = await freeSiteUrl()
const site = await startSite(await startApi({ SVC_SITE_URL: siteUrl }), { SVC_SITE_URL: siteUrl })

test.each(['/', '/help', '/status', '/sign-up'])('a link to %s is shown with title, text and picture', async (path) => {
  const { html } = await site.browser().open(path)
  const read = (name: string) => new RegExp(`<meta (?:property|name)="${name}" content="([^"]+)"`).exec(html)?.[1] ?? ''
  for (const name of ['og:title', 'og:description', 'og:type', 'description'])
    expect([name, read(name)]).not.toEqual([name, ''])
  expect(read('twitter:card')).toBe('summary_large_image')
  expect(read('og:image')).toMatch(new RegExp(`^${siteUrl}/assets/[0-9a-f]+/preview.png$`))
  const picture = await fetch(read('og:image'))
  expect(picture.headers.get('content-type')).toBe('image/png')
  expect(picture.headers.get('cross-origin-resource-policy')).toBe('cross-origin')
  const bytes = Buffer.from(await picture.arrayBuffer())
  expect([bytes.readUInt32BE(16), bytes.readUInt32BE(20)]).toEqual([1200, 630])
})
