"""Calls the API with a client generated from openapi.json."""

import os

from heliograph_client import AuthenticatedClient
from heliograph_client.api.balance import get_balance
from heliograph_client.api.messages import cancel_message, get_message, list_messages, send_sms
from heliograph_client.api.opt_out_lists import add_optout, create_optout_list, list_optouts
from heliograph_client.models import Balance, ListMessagesStatusItem, Message, MessagePage
from heliograph_client.models import NewOptout, NewOptoutList, OptoutList, OptoutPage, Problem
from heliograph_client.models import SendSms

url, key = os.environ["HELIOGRAPH_URL"], os.environ["HELIOGRAPH_KEY"]
client = AuthenticatedClient(base_url=url, token=key)

body = SendSms(originator="Shop", recipient="+447700900123", text="Hello", reference="order 7")
message = send_sms.sync(client=client, body=body, idempotency_key="order-7")
assert isinstance(message, Message), message
fetched = get_message.sync(client=client, id=message.id)
assert isinstance(fetched, Message) and fetched.created_at == message.created_at, fetched
print(fetched.status, fetched.timeline[0].event)

status = [ListMessagesStatusItem.QUEUED]
page = list_messages.sync(client=client, status=status, reference="order 7", from_=fetched.created_at)
assert isinstance(page, MessagePage), page
print([m.id for m in page.data] == [message.id], page.next_cursor is None)

cancelled = cancel_message.sync(client=client, id=message.id)
assert isinstance(cancelled, Message), cancelled
balance = get_balance.sync(client=client)
assert isinstance(balance, Balance), balance
print(cancelled.status, balance.available, balance.currency)

created = create_optout_list.sync(client=client, body=NewOptoutList(name="Newsletter"))
assert isinstance(created, OptoutList), created
add_optout.sync(client=client, id=created.id, body=NewOptout(number="+447700900123"))
listed = list_optouts.sync(client=client, id=created.id)
assert isinstance(listed, OptoutPage), listed
print(*[o.number for o in listed.data])

problem = send_sms.sync(client=client, body=SendSms(originator="Shop", recipient="12", text="Hello"))
assert isinstance(problem, Problem) and problem.code == "invalid_request", problem
for fault in problem.errors or []:
    print(fault.pointer, fault.code == "invalid_number")
