/** The feed of incidents at the site's own address, since the API need not be public. */
import type { Router } from '@koa/router'
import { expectSuccess } from '../client/api-error.ts'
import { feedContentType, feedPath, renderIncidentFeed } from '../domain/operations/incident-feed.ts'
import type { SiteConfig } from '../platform/config/site.ts'
import { entityTagOf, isNamed } from '../platform/koa/entity-tag.ts'
import type { Api } from './api.ts'
import { visitorOf } from './visit.ts'

/** For how long caches answer without asking. */
const secondsMax = 60

interface Deps {
  readonly api: Api
  readonly config: Pick<SiteConfig, 'siteUrl' | 'brandName'>
}

export function addIncidentFeedRoute(router: Router, { api, config }: Deps): void {
  router.get(feedPath, async (ctx) => {
    const incidents = expectSuccess(await api.client({ visitor: visitorOf(ctx) }).GET('/api/v1/incidents'))
    const feed = renderIncidentFeed(incidents, config)
    ctx.body = feed
    ctx.type = feedContentType
    ctx.set('Cache-Control', `public, max-age=${secondsMax}`)
    const tag = entityTagOf(feed)
    ctx.set('ETag', tag)
    if (isNamed(tag, ctx.get('if-none-match'))) ctx.status = 304
  })
}
