echo '{"network":{"allowedDomains":["registry.example.org"],"deniedDomains":[]},"filesystem":{"denyRead":[],"allowWrite":["."],"denyWrite":[]}}' >../srt.json
srt --settings ../srt.json npm ci
