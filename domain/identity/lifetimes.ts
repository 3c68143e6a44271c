/** How long sign-ins and what is known of them count. What no longer counts is deleted. */

/** Of a refresh token that is not exchanged. */
export const refreshTokenDays = 30

/** How long a network counts as an operator's after its last use. */
export const operatorNetworkDays = 30

/** Of the numbers of failed sign-ins, for the charts of operators. */
export const signInFailureHours = 24
