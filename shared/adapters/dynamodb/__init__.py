"""The stores on DynamoDB: each write states its condition, each refusal is told apart, a lost reply is recognised."""
