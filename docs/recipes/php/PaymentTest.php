<?php

use PHPUnit\Framework\TestCase;

require_once __DIR__ . '/Gateway.php';

final class PaymentTest extends TestCase
{
    private static Gateway $gateway;

    public static function setUpBeforeClass(): void
    {
        self::$gateway = Gateway::start();
    }

    public static function tearDownAfterClass(): void
    {
        self::$gateway->stop();
    }

    public function testAPaymentIsAcceptedAndItsCallbackComesWhenASecondHasPassed(): void
    {
        $answer = self::$gateway->pay('/make_payment', self::collection());
        $this->assertSame('202', $answer['response_code']);

        self::$gateway->control('POST', 'clock/advance', ['seconds' => 1]); // no test sleeps

        [$callback] = self::$gateway->inbox('orders');
        $this->assertSame('000/SUCCESS', $callback['json']['trans_status']);
        $this->assertSame('valid', $callback['signature']);
    }

    public function testANumberThatEndsIn9IsDeclined(): void
    {
        $declined = ['transaction_id' => 'T1002', 'customer_number' => '0244000009'];
        $answer = self::$gateway->pay('/make_payment', $declined + self::collection());
        $this->assertSame('015', $answer['response_code']);
    }

    private static function collection(): array
    {
        return [
            'service_id' => 55,
            'reference' => 'Order 1001',
            'transaction_id' => 'T1001',
            'trans_type' => 'CTM',
            'amount' => 10.5,
            'nw' => 'MTN',
            'payment_option' => 'MOM',
            'customer_number' => '0244000001',
            'callback_url' => self::$gateway->url . '/_sandbox/inbox/orders',
            'request_time' => '2026-01-01 09:00',
        ];
    }
}
