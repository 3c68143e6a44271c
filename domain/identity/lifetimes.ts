/** How long sign-ins and what is known of them count. What no longer counts is deleted. */

/** Of a refresh token that is not exchanged. */
export const refreshTokenDays = 30

/** How long a network counts as an operator's after its last use. */
export const operatorNetworkDays = 30

/** Of the numbers of failed sign-ins, for the charts of operators. */
export const signInFailureHours = 24

/** Of an authorization request of an app, in which its user signs in and approves. The app itself waits for less. */
export const appRequestSeconds = 300
/** Of an authorization code of an app. */
export const appCodeSeconds = 60
/** Of an access token of an app. */
export const appAccessTokenSeconds = 600
/** Of a refresh token of an app that is not exchanged: a season without a stream must not sign OBS out. */
export const appRefreshTokenDays = 400
/** How long replaced refresh tokens of apps are recognised, so that the use of one ends its grant. */
export const replacedAppTokenDays = 30
