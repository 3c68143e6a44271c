/** Kinds of IP addresses. */
import ipaddr from 'ipaddr.js'

/** Whether an address stands for all addresses of a machine: relays can bind it, and users cannot send to it. */
export const isUnspecified = (address: string): boolean =>
  ipaddr.isValid(address) && ipaddr.process(address).range() === 'unspecified'
