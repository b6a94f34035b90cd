bawn run --agent claude --secret ANTHROPIC_API_KEY -- check-key
