/** The configuration of the site, which stores no data and holds no secret. */

import type { z } from 'zod'
import type { UsageEnforcement } from '../../domain/billing/usage-cycle.ts'
import { deepFreeze, type Environment, readVariables } from './environment.ts'
import { findLegalConflicts, legalPages } from './legal.ts'
import { url } from './values.ts'
import { Variables } from './variables.ts'

const SiteVariables = Variables.pick({
  LOG_LEVEL: true,
  SVC_SITE_PORT: true,
  SVC_SITE_URL: true,
  SVC_DRAIN_SECONDS: true,
  SVC_TRUSTED_PROXY_HOPS: true,
  SVC_BRAND_NAME: true,
  SVC_SUPPORT_EMAIL: true,
  SVC_TERMS_URL: true,
  SVC_TERMS_VERSION: true,
  SVC_PRIVACY_URL: true,
  SVC_IMPRINT_URL: true,
  SVC_REFUND_URL: true,
  SVC_ABUSE_CONTACT: true,
  SVC_PLAN_PRICE: true,
  SVC_ADDON_PRICE: true,
  SVC_CURRENCY: true,
  SVC_TIME_BANK_HOURS_PER_RELAY: true,
  SVC_TIME_BANK_ENFORCEMENT: true,
  SVC_MAILBOX: true,
  SVC_OBS_PROVIDER_ID: true,
}).extend({ SVC_API_URL: url.default('http://localhost:8080') })

/** Reads and checks the variables of the site. Throws `ConfigError`. */
export function readSiteConfig(env: Environment = process.env) {
  const v = readVariables(SiteVariables, env, findLegalConflicts)
  return deepFreeze({
    logLevel: v.LOG_LEVEL,
    port: v.SVC_SITE_PORT,
    /** The URL of the site for browsers. */
    siteUrl: v.SVC_SITE_URL ?? `http://localhost:${v.SVC_SITE_PORT}`,
    /** The URL of the api for the site. */
    apiUrl: v.SVC_API_URL,
    drainSeconds: v.SVC_DRAIN_SECONDS,
    trustedProxyHops: v.SVC_TRUSTED_PROXY_HOPS,
    brandName: v.SVC_BRAND_NAME,
    /** Shown on the help page; undefined for none. */
    supportEmail: v.SVC_SUPPORT_EMAIL,
    /** Linked in the footer of all pages. */
    legal: legalPages(v),
    prices: pricesOf(v),
    relayTime: { hoursPerRelay: v.SVC_TIME_BANK_HOURS_PER_RELAY, enforcement: v.SVC_TIME_BANK_ENFORCEMENT },
    /** Whether the page /mailbox exists. */
    mailbox: v.SVC_MAILBOX,
    /** Whether pages offer to connect apps, such as the OBS source. */
    canConnectApps: v.SVC_OBS_PROVIDER_ID !== undefined,
  })
}

/** The prices per month that pages show. The billing provider decides what is charged. */
export interface Prices {
  /** Undefined when pages show none: the checkout shows it. */
  readonly plan: number | undefined
  readonly addon: number
  /** ISO 4217. */
  readonly currency: string
}

type PriceVariables = Pick<z.infer<typeof SiteVariables>, 'SVC_PLAN_PRICE' | 'SVC_ADDON_PRICE' | 'SVC_CURRENCY'>

const pricesOf = (v: PriceVariables): Prices => ({
  plan: v.SVC_PLAN_PRICE,
  addon: v.SVC_ADDON_PRICE,
  currency: v.SVC_CURRENCY,
})

/** The relay time that pages promise. The api and the worker count and enforce it by the same variables. */
export interface RelayTimeTerms {
  /** Per cycle; 0 for no limit. */
  readonly hoursPerRelay: number
  readonly enforcement: UsageEnforcement
}

export type SiteConfig = ReturnType<typeof readSiteConfig>
