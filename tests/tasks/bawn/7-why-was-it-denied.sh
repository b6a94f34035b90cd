! bawn run --allow api.example.org:443 -- curl -s https://example.com
bawn log --denials | grep -e '--allow example.com:443'
