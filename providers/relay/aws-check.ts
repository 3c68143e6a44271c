/** Checks the settings of a region at EC2, without creating anything. */
import type { AwsSettings } from '../../platform/config/regions.ts'
import type { Ec2Call } from './aws-connection.ts'
import { Ec2Error } from './aws-errors.ts'
import { createRunInput, type Scope, tagsOf } from './aws-instances.ts'
import { RelayProviderError } from './provider.ts'

/** Rejects with an error that names the wrong setting: credentials, permission, image, subnet or security group. */
export async function checkAwsSettings(call: Ec2Call, scope: Scope, settings: AwsSettings): Promise<void> {
  await checkImage(call, settings)
  await checkNetwork(call, settings)
  for (const subnetId of settings.subnet_ids) await checkLaunch(call, scope, settings, subnetId)
}

const misconfigured = (message: string) => new RelayProviderError(message, 'give_up', { detail: 'configuration' })

async function checkImage(call: Ec2Call, { image_id, region }: AwsSettings): Promise<void> {
  const input = { ImageIds: [image_id] }
  const { Images: [image] = [] } = await call('DescribeImages', (ec2, options) => ec2.describeImages(input, options))
  if (!image) throw misconfigured(`aws.image_id: EC2 shows no image ${image_id} in ${region} to this account`)
  if (image.State !== 'available') throw misconfigured(`aws.image_id: the image ${image_id} is ${image.State}`)
}

/** Also compares the networks, since a launch refuses a security group of another network than its subnet's. */
async function checkNetwork(call: Ec2Call, { subnet_ids, security_group_ids, region }: AwsSettings): Promise<void> {
  const subnetInput = { SubnetIds: subnet_ids }
  const { Subnets = [] } = await call('DescribeSubnets', (ec2, options) => ec2.describeSubnets(subnetInput, options))
  const groupInput = { GroupIds: security_group_ids }
  const { SecurityGroups = [] } = await call('DescribeSecurityGroups', (ec2, options) =>
    ec2.describeSecurityGroups(groupInput, options),
  )
  const missingSubnet = subnet_ids.find((id) => !Subnets.some(({ SubnetId }) => SubnetId === id))
  if (missingSubnet) throw misconfigured(`aws.subnet_ids: EC2 shows no subnet ${missingSubnet} in ${region}`)
  const missingGroup = security_group_ids.find((id) => !SecurityGroups.some(({ GroupId }) => GroupId === id))
  if (missingGroup) throw misconfigured(`aws.security_group_ids: EC2 shows no group ${missingGroup} in ${region}`)
  const networks = new Set([...Subnets, ...SecurityGroups].map(({ VpcId }) => VpcId))
  if (networks.size > 1)
    throw misconfigured(
      `aws.subnet_ids and aws.security_group_ids belong to different networks: ${[...networks].join(', ')}`,
    )
}

/** EC2 answers a dry run of a permitted and valid launch with the error DryRunOperation. */
async function checkLaunch(call: Ec2Call, scope: Scope, settings: AwsSettings, subnetId: string): Promise<void> {
  // Tags as a launch has them, since the policy in docs/relays.md requires them.
  const request = { ...checkedIdentity, subnetId, userData: '' }
  const input = { ...createRunInput(scope, settings, request), DryRun: true }
  await expectPermitted(call('RunInstances', (ec2, options) => ec2.runInstances(input, options)))
}

/** Rejects when the credentials may not reserve a stable address. */
export async function checkAddresses(call: Ec2Call, scope: Scope): Promise<void> {
  const TagSpecifications = [{ ResourceType: 'elastic-ip' as const, Tags: tagsOf(scope, checkedIdentity) }]
  const input = { Domain: 'vpc' as const, TagSpecifications, DryRun: true }
  await expectPermitted(call('AllocateAddress', (ec2, options) => ec2.allocateAddress(input, options)))
}

const checkedIdentity = { instanceId: 'aws-check', sessionId: null }

async function expectPermitted(dryRun: Promise<unknown>): Promise<void> {
  try {
    await dryRun
  } catch (error) {
    if (!(error instanceof Ec2Error && error.code === 'DryRunOperation')) throw error
  }
}
