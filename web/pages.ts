/** All pages of the site. */
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
import type { PageRoute } from './page.ts'
import * as account from './pages/account.tsx'
import * as accountActivity from './pages/account-activity.tsx'
import * as accountChanges from './pages/account-changes.tsx'
import * as accountDeletion from './pages/account-deletion.tsx'
import * as accountExport from './pages/account-export.tsx'
import * as accountNotifications from './pages/account-notifications.tsx'
import * as accountSecurity from './pages/account-security.tsx'
import * as approval from './pages/approval.tsx'
import * as confirmEmail from './pages/confirm-email.tsx'
import * as connectionKitQr from './pages/connection-kit-qr.tsx'
import * as emailVerification from './pages/email-verification.tsx'
import * as forgotPassword from './pages/forgot-password.tsx'
import * as help from './pages/help.tsx'
import * as helpWebhooks from './pages/help-webhooks.tsx'
import * as history from './pages/history.tsx'
import * as historySession from './pages/history-session.tsx'
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
import * as signOut from './pages/sign-out.ts'
import * as signUp from './pages/sign-up.tsx'
import * as status from './pages/status.tsx'
import * as usage from './pages/usage.tsx'

export const pages: readonly PageRoute[] = [
  home.show,
  help.show,
  helpWebhooks.show,
  reference.show,
  status.show,
  login.show,
  login.submit,
  approval.approve,
  approval.deny,
  signUp.show,
  signUp.submit,
  signOut.submit,
  forgotPassword.show,
  forgotPassword.submit,
  resetPassword.show,
  resetPassword.submit,
  emailVerification.show,
  emailVerification.submit,
  confirmEmail.show,
  confirmEmail.submit,
  oauth.start,
  oauth.callback,
  merge.show,
  merge.submit,
  merge.startProof,

  relays.show,
  relays.start,
  relays.stop,
  relaysEnded.hide,
  connectionKitQr.show,
  history.list,
  usage.show,
  usage.csv,
  historySession.show,
  account.show,
  accountSecurity.show,
  accountSecurity.sendVerification,
  accountSecurity.unlink,
  accountSecurity.signOut,
  accountSecurity.signOutElsewhere,
  accountChanges.showPassword,
  accountChanges.changePassword,
  accountChanges.showEmail,
  accountChanges.changeEmail,
  accountDeletion.show,
  accountDeletion.submit,
  accountDeletion.restore,
  accountExport.download,
  accountActivity.show,
  account.checkout,
  account.payments,
  account.cancelSubscription,

  accountNotifications.show,
  accountNotifications.save,
  accountNotifications.saveEndpoint,
  accountNotifications.rotateSecret,
  accountNotifications.testEndpoint,
  accountNotifications.removeEndpoint,
  notificationsOff.show,
  notificationsOff.submit,

  sandbox.checkout,
  sandbox.list,
  sandbox.simulate,

  mailbox.list,
  mailbox.show,

  operatorSignIn.show,
  operatorSignIn.submit,
  operatorSignIn.signOut,
  operatorOverview.show,
  operatorUsers.find,
  operatorUser.show,
  operatorUser.grant,
  operatorUser.withdraw,
  operatorUser.relayAccess,
  operatorUser.disable,
  operatorUser.enable,
  operatorSessions.list,
  operatorSession.show,
  operatorSession.disconnect,
  operatorSession.transition,
  operatorBillingEvents.list,
  operatorBilledAccounts.list,
  operatorBillingEvent.show,
  operatorBillingEvent.replay,
  operatorBillingEvent.dismiss,
  operatorInstances.list,
  operatorRegions.show,
  operatorRegions.drain,
  operatorRegions.resume,
  operatorJobs.show,
  operatorAudit.show,
]
