<?php
// Receives and verifies Heliograph webhooks, and prints `verified TYPE ID` for each.
//
// WEBHOOK_SECRET=whsec_… php -S 127.0.0.1:9000 receiver.php

/** Returns whether one of the signatures is valid and at most five minutes old. */
function verified(string $secret, string $id, string $timestamp, string $body, string $signatures): bool
{
    $key = base64_decode(substr($secret, strlen('whsec_')), true);
    if (!$key) {
        return false; // With an empty key, anyone could sign.
    }
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    // During a rotation there are two, with a space between them.
    foreach (explode(' ', $signatures) as $signature) {
        if (hash_equals($expected, $signature)) {
            return ctype_digit($timestamp) && abs(time() - (int) $timestamp) <= 300;
        }
    }
    return false;
}

function respond(int $status, string $text = ''): never
{
    http_response_code($status);
    header('Content-Type: text/plain; charset=utf-8');
    exit($text);
}

if ((int) ($_SERVER['CONTENT_LENGTH'] ?? 0) > 1 << 20) {
    respond(413, 'the body is longer than 1 MiB');
}
$id = $_SERVER['HTTP_WEBHOOK_ID'] ?? '';
$timestamp = $_SERVER['HTTP_WEBHOOK_TIMESTAMP'] ?? '';
$signatures = $_SERVER['HTTP_WEBHOOK_SIGNATURE'] ?? '';
$body = file_get_contents('php://input');
if (!verified((string) getenv('WEBHOOK_SECRET'), $id, $timestamp, $body, $signatures)) {
    respond(400, 'not verified: no signature matches, or the timestamp is more than 5 minutes off');
}
// The same id can arrive again: process each id only once.
$event = json_decode($body, true);
file_put_contents('php://stdout', "verified {$event['type']} $id\n");
respond(204);
