/** A self-signed certificate for `localhost` that is valid until 2126. Only servers of tests use it. */

export const localhostKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg5aHwgN4DBrPz8aIl
NBRpw8fENsJfJTdpuI0eQ4hFyTKhRANCAAT02FJz0OnptoYjt4fZ/xq9/rtasykM
wtI+FPJ6zNHfYtnCh49rwyjz5MIHRavjt0dqVQbuvB0ChFv3v8kJTPSA
-----END PRIVATE KEY-----
`

export const localhostCertificate = `-----BEGIN CERTIFICATE-----
MIIBlDCCATugAwIBAgIUVNth9d9G1Rv4jQuw3xB5zaS6XIgwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMjE1MzY1OFoYDzIxMjYxMDI5
MTUzNjU4WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAT02FJz0OnptoYjt4fZ/xq9/rtasykMwtI+FPJ6zNHfYtnCh49rwyjz
5MIHRavjt0dqVQbuvB0ChFv3v8kJTPSAo2kwZzAdBgNVHQ4EFgQUqHGt3edmplzs
ElcKsDeBTPSoSUswHwYDVR0jBBgwFoAUqHGt3edmplzsElcKsDeBTPSoSUswDwYD
VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID
RwAwRAIgf+y7bdOIrp8eNMbmHgzabpY2/n/Ch8032YXJtGwW7Q4CIDWWB+9LwHEy
55ppHJyeerz2EWmxWk/zikmQPoclUJE2
-----END CERTIFICATE-----
`
