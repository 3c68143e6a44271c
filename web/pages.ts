/** All pages of the site: method, path, who may open it, and what it shows. */
import { referencePath } from './api-reference.ts'
import * as operatorAudit from './operator/audit.tsx'
import * as operatorBilledAccounts from './operator/billed-accounts.tsx'
import * as operatorBillingEvent from './operator/billing-event.tsx'
import * as operatorBillingEvents from './operator/billing-events.tsx'
import * as operatorInstances from './operator/instances.tsx'
import * as operatorJobs from './operator/jobs.tsx'
import * as operatorOverview from './operator/overview.tsx'
import * as operatorRegions from './operator/regions.tsx'
import * as operatorSession from './operator/session.tsx'
import * as operatorSessions from './operator/sessions.tsx'
import * as operatorSignIn from './operator/sign-in.tsx'
import * as operatorUser from './operator/user.tsx'
import * as operatorUsers from './operator/users.tsx'
import * as operatorWithdrawal from './operator/withdrawal.tsx'
import * as operatorWithdrawals from './operator/withdrawals.tsx'
import { operatorSignInPath } from './operator-access.ts'
import type { PageHandler, PageRoute } from './page.ts'
import * as account from './pages/account.tsx'
import * as accountActivity from './pages/account-activity.tsx'
import * as accountApps from './pages/account-apps.tsx'
import * as accountChanges from './pages/account-changes.tsx'
import * as accountDeletion from './pages/account-deletion.tsx'
import * as accountExport from './pages/account-export.tsx'
import * as accountKeys from './pages/account-keys.tsx'
import * as accountNotifications from './pages/account-notifications.tsx'
import * as accountSecurity from './pages/account-security.tsx'
import * as accountWithdrawals from './pages/account-withdrawals.tsx'
import * as approval from './pages/approval.tsx'
import * as confirmEmail from './pages/confirm-email.tsx'
import * as connect from './pages/connect.tsx'
import * as connection from './pages/connection.tsx'
import * as connectionKitQr from './pages/connection-kit-qr.tsx'
import * as connections from './pages/connections.tsx'
import * as emailVerification from './pages/email-verification.tsx'
import * as firstSteps from './pages/first-steps.tsx'
import * as forgotPassword from './pages/forgot-password.tsx'
import * as help from './pages/help.tsx'
import * as helpObs from './pages/help-obs.tsx'
import * as helpSceneSwitching from './pages/help-scene-switching.tsx'
import * as helpWebhooks from './pages/help-webhooks.tsx'
import * as history from './pages/history.tsx'
import * as historyCsv from './pages/history-csv.ts'
import * as historySession from './pages/history-session.tsx'
import * as historyShare from './pages/history-share.tsx'
import * as home from './pages/home.tsx'
import * as login from './pages/login.tsx'
import * as mailbox from './pages/mailbox.tsx'
import * as merge from './pages/merge.tsx'
import * as notificationsOff from './pages/notifications-off.tsx'
import * as oauth from './pages/oauth.tsx'
import * as reference from './pages/reference.tsx'
import * as relays from './pages/relays.tsx'
import * as relaysEnded from './pages/relays-ended.tsx'
import * as resetPassword from './pages/reset-password.tsx'
import * as sandbox from './pages/sandbox.tsx'
import * as sharedSession from './pages/shared-session.tsx'
import * as signOut from './pages/sign-out.ts'
import * as signUp from './pages/sign-up.tsx'
import * as status from './pages/status.tsx'
import * as usage from './pages/usage.tsx'

type Options = Pick<PageRoute, 'returnTo' | 'allowsCrossSiteEntry' | 'hasFiles'>
type Caller = PageRoute['caller']

const get = (path: string, caller: Caller, handle: PageHandler, options: Options = {}): PageRoute => ({
  method: 'GET',
  path,
  caller,
  handle,
  ...options,
})
const post = (...args: Parameters<typeof get>): PageRoute => ({ ...get(...args), method: 'POST' })

const [anyone, user, operator] = ['anyone', 'user', 'operator'] as const
const crossSite: Options = { allowsCrossSiteEntry: true }
/** The page that has the form. */
const formOn = (returnTo: string): Options => ({ returnTo })

export const pages: readonly PageRoute[] = [
  get('/', anyone, home.show),
  get('/help', anyone, help.show),
  get('/help/obs', anyone, helpObs.show, crossSite),
  get('/help/scene-switching', anyone, helpSceneSwitching.show, crossSite),
  get('/help/webhooks', anyone, helpWebhooks.show, crossSite),
  get(referencePath, anyone, reference.show),
  get('/status', anyone, status.show),
  get('/login', anyone, login.show),
  post('/login', anyone, login.submit),
  post('/login/approve', anyone, approval.approve),
  post('/login/deny', anyone, approval.deny),
  get('/connect/:id', user, connect.show),
  post('/connect/:id/approve', user, connect.approve),
  post('/connect/:id/deny', user, connect.deny),
  get('/sign-up', anyone, signUp.show),
  post('/sign-up', anyone, signUp.submit),
  // Skips the renewal of an expired access token before this page, so that signing out works while the API is
  // unavailable.
  post('/sign-out', anyone, signOut.submit, crossSite),
  get('/forgot-password', anyone, forgotPassword.show),
  post('/forgot-password', anyone, forgotPassword.submit),
  // Opened from emails. They need no sign-in and do not use up the token.
  get('/reset-password', anyone, resetPassword.show, crossSite),
  post('/reset-password', anyone, resetPassword.submit, crossSite),
  get('/verify-email', anyone, emailVerification.show, crossSite),
  post('/verify-email', anyone, emailVerification.submit, crossSite),
  get('/confirm-email', anyone, confirmEmail.show, crossSite),
  post('/confirm-email', anyone, confirmEmail.submit, crossSite),
  post('/oauth/:provider/start', anyone, oauth.start),
  // The provider's redirect is cross-site, so the access token's cookie is missing here.
  get('/oauth/:provider/callback', anyone, oauth.callback, crossSite),
  get('/merge', anyone, merge.show),
  post('/merge', anyone, merge.submit),
  post('/merge/oauth/:provider', anyone, merge.startProof),

  get('/relays', user, relays.show),
  post('/relays/start', user, relays.start),
  post('/relays/:session_id/stop', user, relays.stop),
  post('/relays/:session_id/hide', user, relaysEnded.hide, formOn('/relays')),
  post('/relays/hide-first-steps', user, firstSteps.hide, formOn('/relays')),
  get('/relays/:session_id/qr/:file', user, connectionKitQr.show),
  get('/relays/:session_id/links', user, relays.showLinks),
  get('/connections', user, connections.list),
  get('/connections/:name', user, connection.show),
  post('/connections/:name', user, connection.save, { returnTo: '/connections', hasFiles: true }),
  post('/connections/:name/slate/remove', user, connection.removeSlate, formOn('/connections')),
  get('/history', user, history.list),
  get('/usage', user, usage.show),
  get('/usage.csv', user, usage.csv),
  get('/history/:session_id', user, historySession.show),
  get('/history/:session_id/record.csv', user, historyCsv.csv),
  post('/history/:session_id/share', user, historyShare.share, formOn('/history')),
  post('/history/:session_id/share/revoke', user, historyShare.revoke, formOn('/history')),
  // Opened from chats and other sites, without an account.
  get('/shared/:token', anyone, sharedSession.show, crossSite),
  get('/account', user, account.show),
  get('/account/security', user, accountSecurity.show),
  post('/account/verification', user, accountSecurity.sendVerification, formOn('/account/security')),
  post('/account/linked/:provider/unlink', user, accountSecurity.unlink, formOn('/account/security')),
  post('/account/sessions/:id/sign-out', user, accountSecurity.signOut, formOn('/account/security')),
  post('/account/sign-out-elsewhere', user, accountSecurity.signOutElsewhere, formOn('/account/security')),
  get('/account/security/password', user, accountChanges.showPassword),
  post('/account/security/password', user, accountChanges.changePassword, formOn('/account/security/password')),
  get('/account/security/email', user, accountChanges.showEmail),
  post('/account/security/email', user, accountChanges.changeEmail, formOn('/account/security/email')),
  get('/account/security/delete', user, accountDeletion.show),
  post('/account/security/delete', user, accountDeletion.submit, formOn('/account/security/delete')),
  post('/account/security/restore', user, accountDeletion.restore, formOn('/account/security')),
  get('/account/security/export', user, accountExport.download),
  get('/account/keys', user, accountKeys.show),
  post('/account/keys', user, accountKeys.create, formOn('/account/keys')),
  post('/account/keys/access', user, accountKeys.setAccess, formOn('/account/keys')),
  get('/account/keys/:id/delete', user, accountKeys.confirm),
  post('/account/keys/:id/delete', user, accountKeys.remove, formOn('/account/keys')),
  get('/account/keys/:id/qr/:session_id', user, accountKeys.showQr),
  get('/account/apps', user, accountApps.show),
  get('/account/apps/:client_id/disconnect', user, accountApps.confirm),
  post('/account/apps/:client_id/disconnect', user, accountApps.disconnect, formOn('/account/apps')),
  get('/account/activity', user, accountActivity.show),
  post('/account/checkout', user, account.checkout, formOn('/account')),
  get('/account/payments', user, account.payments),
  post('/account/subscriptions/:subscription_id/cancel', user, account.cancelSubscription, formOn('/account')),
  get('/account/withdrawals/:subscription_id', user, accountWithdrawals.show),
  post('/account/withdrawals/:subscription_id', user, accountWithdrawals.submit, formOn('/account')),

  get('/account/notifications', user, accountNotifications.show),
  post('/account/notifications', user, accountNotifications.save, formOn('/account/notifications')),
  post('/account/notifications/endpoint', user, accountNotifications.saveEndpoint, formOn('/account/notifications')),
  post(
    '/account/notifications/endpoint/rotate',
    user,
    accountNotifications.rotateSecret,
    formOn('/account/notifications'),
  ),
  post(
    '/account/notifications/endpoint/test',
    user,
    accountNotifications.testEndpoint,
    formOn('/account/notifications'),
  ),
  post(
    '/account/notifications/endpoint/remove',
    user,
    accountNotifications.removeEndpoint,
    formOn('/account/notifications'),
  ),
  get('/notifications/off', anyone, notificationsOff.show, crossSite),
  post('/notifications/off', anyone, notificationsOff.submit, crossSite),

  get('/sandbox/checkout/:subscription_id', user, sandbox.checkout),
  get('/sandbox/subscriptions', user, sandbox.list),
  post('/sandbox/subscriptions/:subscription_id/:outcome', user, sandbox.simulate, formOn('/sandbox/subscriptions')),

  get('/mailbox', anyone, mailbox.list),
  get('/mailbox/:id', anyone, mailbox.show),

  get(operatorSignInPath, anyone, operatorSignIn.show, crossSite),
  post(operatorSignInPath, anyone, operatorSignIn.submit, crossSite),
  post('/operator/sign-out', operator, operatorSignIn.signOut),
  get('/operator', operator, operatorOverview.show),
  get('/operator/users', operator, operatorUsers.find),
  get('/operator/users/:id', operator, operatorUser.show),
  post('/operator/users/:id/grant', operator, operatorUser.grant, formOn('/operator/users')),
  post('/operator/users/:id/withdraw', operator, operatorUser.withdraw, formOn('/operator/users')),
  post('/operator/users/:id/relay-access', operator, operatorUser.relayAccess, formOn('/operator/users')),
  post('/operator/users/:id/disable', operator, operatorUser.disable, formOn('/operator/users')),
  post('/operator/users/:id/enable', operator, operatorUser.enable, formOn('/operator/users')),
  get('/operator/sessions', operator, operatorSessions.list),
  get('/operator/sessions/:id', operator, operatorSession.show),
  post('/operator/sessions/:id/disconnect', operator, operatorSession.disconnect, formOn('/operator/sessions')),
  post('/operator/sessions/:id/transition', operator, operatorSession.transition, formOn('/operator/sessions')),
  get('/operator/billing', operator, operatorBillingEvents.list),
  get('/operator/billing/accounts', operator, operatorBilledAccounts.list),
  get('/operator/billing/events/:id', operator, operatorBillingEvent.show),
  post('/operator/billing/events/:id/replay', operator, operatorBillingEvent.replay, formOn('/operator/billing')),
  post('/operator/billing/events/:id/dismiss', operator, operatorBillingEvent.dismiss, formOn('/operator/billing')),
  get('/operator/billing/withdrawals', operator, operatorWithdrawals.list),
  get('/operator/billing/withdrawals/:id', operator, operatorWithdrawal.show),
  post('/operator/billing/withdrawals/:id/refund', operator, operatorWithdrawal.refund, formOn('/operator/billing')),
  post(
    '/operator/billing/withdrawals/:id/mark-refunded',
    operator,
    operatorWithdrawal.markRefunded,
    formOn('/operator/billing'),
  ),
  get('/operator/instances', operator, operatorInstances.list),
  get('/operator/regions', operator, operatorRegions.show),
  post('/operator/regions/:region/drain', operator, operatorRegions.drain, formOn('/operator/regions')),
  post('/operator/regions/:region/resume', operator, operatorRegions.resume, formOn('/operator/regions')),
  get('/operator/jobs', operator, operatorJobs.show),
  get('/operator/audit', operator, operatorAudit.show),
]
